/* SPDX-License-Identifier: Apache-2.0 */
/* Tells AddressSanitizer, ThreadSanitizer and valgrind about stack switches. The functions are inline, so
 * builds without these tools contain none of this code. */
#ifndef DUDA_FIBER_SANITIZER_HOOKS_H
#define DUDA_FIBER_SANITIZER_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define DUDA_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUDA_HAS_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define DUDA_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DUDA_HAS_TSAN 1
#endif
#endif

#ifdef DUDA_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

struct duda_sanitizer_fiber {
    void *fake_own, *fake_back; /* fake stack frames, which the sanitizer allocates elsewhere */
    const void *low, *back_low;
    size_t size, back_size;
};

static inline void duda_sanitizer_register_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
    c->low = low;
    c->size = size;
}

/* Called by the resuming side, before and after it switches to the fiber. */
static inline void duda_sanitizer_before_switch_in(struct duda_sanitizer_fiber *c)
{
    __sanitizer_start_switch_fiber(&c->fake_back, c->low, c->size);
}
static inline void duda_sanitizer_after_switch_out(struct duda_sanitizer_fiber *c)
{
    __sanitizer_finish_switch_fiber(c->fake_back, NULL, NULL);
}

/* Called by the fiber, after it has been resumed and before it switches back. */
static inline void duda_sanitizer_after_switch_in(struct duda_sanitizer_fiber *c, bool first)
{
    __sanitizer_finish_switch_fiber(first ? NULL : c->fake_own, &c->back_low, &c->back_size);
}
static inline void duda_sanitizer_before_switch_out(struct duda_sanitizer_fiber *c, bool last)
{
    __sanitizer_start_switch_fiber(last ? NULL : &c->fake_own, c->back_low, c->back_size);
}

/* Unpoisons the stack, because frames that never returned leave their memory poisoned. */
static inline void duda_sanitizer_unregister_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
    (void)c;
    __asan_unpoison_memory_region(low, size);
}
#elif defined(DUDA_HAS_TSAN)
#include <sanitizer/tsan_interface.h>

/* ThreadSanitizer treats each fiber as a thread that takes over from the resuming one. */
struct duda_sanitizer_fiber {
    void *own, *back;
};

static inline void duda_sanitizer_register_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
    (void)low, (void)size;
    c->own = __tsan_create_fiber(0);
}

static inline void duda_sanitizer_before_switch_in(struct duda_sanitizer_fiber *c)
{
    c->back = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->own, 0);
}
static inline void duda_sanitizer_after_switch_out(struct duda_sanitizer_fiber *c)
{
    (void)c;
}
static inline void duda_sanitizer_after_switch_in(struct duda_sanitizer_fiber *c, bool first)
{
    (void)c, (void)first;
}
static inline void duda_sanitizer_before_switch_out(struct duda_sanitizer_fiber *c, bool last)
{
    (void)last;
    __tsan_switch_to_fiber(c->back, 0);
}

static inline void duda_sanitizer_unregister_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
    (void)low, (void)size;
    __tsan_destroy_fiber(c->own);
}
#else
struct duda_sanitizer_fiber {
    unsigned valgrind_id;
};

/* Defined if the build found valgrind's header. Without it, these functions do nothing. */
#ifdef DUDA_HAS_VALGRIND
#include <valgrind/valgrind.h>
#endif

static inline void duda_sanitizer_register_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
#ifdef DUDA_HAS_VALGRIND
    c->valgrind_id = (unsigned)VALGRIND_STACK_REGISTER(low, low + size);
#else
    (void)c, (void)low, (void)size;
#endif
}

static inline void duda_sanitizer_before_switch_in(struct duda_sanitizer_fiber *c)
{
    (void)c;
}
static inline void duda_sanitizer_after_switch_out(struct duda_sanitizer_fiber *c)
{
    (void)c;
}
static inline void duda_sanitizer_after_switch_in(struct duda_sanitizer_fiber *c, bool first)
{
    (void)c, (void)first;
}
static inline void duda_sanitizer_before_switch_out(struct duda_sanitizer_fiber *c, bool last)
{
    (void)c, (void)last;
}

static inline void duda_sanitizer_unregister_stack(struct duda_sanitizer_fiber *c, char *low, size_t size)
{
    (void)low, (void)size;
#ifdef DUDA_HAS_VALGRIND
    VALGRIND_STACK_DEREGISTER(c->valgrind_id);
#else
    (void)c;
#endif
}
#endif

#endif
