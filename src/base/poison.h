/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is kept for later use: the address sanitizer reports every access until it is taken again. */
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
#define MK_POISON(p, size)   ASAN_POISON_MEMORY_REGION(p, size)
#define MK_UNPOISON(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#else
#define MK_POISON(p, size)   ((void)(p), (void)(size))
#define MK_UNPOISON(p, size) ((void)(p), (void)(size))
#endif

#endif
