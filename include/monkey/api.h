/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of functions, and the number of the binary interface. All other headers include it. */
#ifndef MONKEY_API_H
#define MONKEY_API_H

#include <stddef.h>

/** Marks every function of these headers: the server offers it to plugins, the library to programs.
 */
#if defined(__GNUC__)
#define MK_API                 __attribute__((visibility("default")))
#define MK_API_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
#define MK_API_MUST_USE        __attribute__((warn_unused_result))
#else
#define MK_API
#define MK_API_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
#define MK_API_MUST_USE
#endif

/**
 * The version of the binary interface. A plugin carries the one it was built with; the server takes it if
 * that is its own. It changes when a struct, a function or a meaning of these headers changes so that what
 * was built before would go wrong; new functions alone do not change it.
 */
#define MK_ABI 1

/** A conversion and a null pointer in inline functions, in the form that compilers of C++ take without a warning. */
#ifdef __cplusplus
#define MK_API_CAST(type, value) (static_cast<type>(value))
#define MK_API_NULL              nullptr
#else
#define MK_API_CAST(type, value) ((type)(value))
#define MK_API_NULL              NULL
#endif

/** The struct of that type whose member `ptr` points to. */
#ifdef __cplusplus
#define MK_CONTAINER(ptr, type, member)                                                                      \
    (static_cast<type *>(static_cast<void *>(reinterpret_cast<char *>(ptr) - offsetof(type, member))))
#else
#define MK_CONTAINER(ptr, type, member) ((type *)(void *)(((char *)(ptr)) - offsetof(type, member)))
#endif

/** How many elements an array has. */
#define MK_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
