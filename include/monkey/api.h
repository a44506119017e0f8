/* SPDX-License-Identifier: Apache-2.0 */
/* Function attributes and the ABI version. All other headers include this one. */
#ifndef MONKEY_API_H
#define MONKEY_API_H

#include <stddef.h>

/** Marks the functions of the public API, which the server exports to plugins, and the library to
 * programs. */
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
 * The ABI version of these headers. It increases when a struct, a function or its behavior changes
 * incompatibly; new functions, and new members of structs that may grow (monkey/sized.h), do not change it.
 * The server accepts plugins built for any version from MK_ABI_OLDEST, the oldest supported one, to its own.
 */
#define MK_ABI        1
#define MK_ABI_OLDEST 1

/** For inline functions: a cast and a null pointer that C++ compilers accept without warnings. */
#ifdef __cplusplus
#define MK_API_CAST(type, value) (static_cast<type>(value))
#define MK_API_NULL              nullptr
#else
#define MK_API_CAST(type, value) ((type)(value))
#define MK_API_NULL              NULL
#endif

/** Begins the initializer of a struct in a macro: `MK_API_INIT(duda_schema){...}`. In C++ it names the type,
 * so that compilers apply the warning settings of this header, not of the caller, to omitted members. */
#ifdef __cplusplus
#define MK_API_INIT(type) type
#else
#define MK_API_INIT(type)
#endif

/** Converts `ptr`, a pointer to the `member` of a struct `type`, to a pointer to that struct. */
#ifdef __cplusplus
#define MK_CONTAINER(ptr, type, member)                                                                      \
    (static_cast<type *>(static_cast<void *>(reinterpret_cast<char *>(ptr) - offsetof(type, member))))
#else
#define MK_CONTAINER(ptr, type, member) ((type *)(void *)(((char *)(ptr)) - offsetof(type, member)))
#endif

/**
 * No limit, for durations in milliseconds. For a parameter that limits a wait, 0 means "do not wait", and
 * MK_FOREVER means "wait without a limit". In structs of options, 0 selects the default. For a time to live,
 * 0 means no expiry.
 */
#define MK_FOREVER 0xffffffffu

/** The number of elements of an array. */
#define MK_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
