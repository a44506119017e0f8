/* SPDX-License-Identifier: Apache-2.0 */
/* Poisons recycled memory: AddressSanitizer reports every access until the memory is allocated again. */
#ifndef MK_BASE_POISON_H
#define MK_BASE_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MK_HAS_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define MK_HAS_ASAN
#endif

#ifdef MK_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define MK_POISON(p, size)      ASAN_POISON_MEMORY_REGION(p, size)
#define MK_UNPOISON(p, size)    ASAN_UNPOISON_MEMORY_REGION(p, size)
#define mk_may_recycle_memory() true
#else
#include <stdbool.h>
#include <stddef.h>

#define MK_POISON(p, size)   ((void)(p), (void)(size))
#define MK_UNPOISON(p, size) ((void)(p), (void)(size))

/* This weak reference is not NULL if a plugin, or the program that embeds libmonkey, was built with the
 * sanitizer. */
void __asan_poison_memory_region(const volatile void *p, size_t size) __attribute__((weak));

/* May request memory be recycled? Otherwise it is freed, and the sanitizer reports later uses. */
static inline bool mk_may_recycle_memory(void)
{
    return !__asan_poison_memory_region;
}
#endif

#endif
