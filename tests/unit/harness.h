/* SPDX-License-Identifier: Apache-2.0 */
/* Takes down what a test has set up. A case begins with a function of its test, which calls NAME_begin() of the fixtures that it
 * needs, and ends with harness_stop(), which ends them in reverse order:
 *
 *     static struct site site;
 *
 *     static int start(void **state)
 *     {
 *         (void)state;
 *         site_begin(&site);
 *         site_add(&site, "page", MK_STR("content"));
 *         return 0;
 *     }
 *     ...
 *     cmocka_unit_test_setup_teardown(a_page_is_found, start, harness_stop)
 *
 * HARNESS_EACH(site, struct site, site) is the same where nothing is added. */
#ifndef MK_UNIT_HARNESS_H
#define MK_UNIT_HARNESS_H

#include "base/assert.h"

enum { HARNESS_MAX = 32 };

struct harness {
    unsigned n;
    struct {
        void (*end)(void *p);
        void *p;
    } at[HARNESS_MAX];
};

static struct harness harness;

/* Calls end(p) when the case has ended. */
static inline void harness_defer(void (*end)(void *p), void *p)
{
    MK_ASSERT(harness.n < HARNESS_MAX);
    harness.at[harness.n].end = end;
    harness.at[harness.n++].p = p;
}

/* The teardown of all tests. */
static inline int harness_stop(void **state)
{
    (void)state;
    while (harness.n) {
        harness.n--;
        harness.at[harness.n].end(harness.at[harness.n].p);
    }
    return 0;
}

/* Defines NAME_begin(): what NAME_init() makes, NAME_fini() takes down at the end of the case. */
#define HARNESS_FIXTURE(name, type)                                                                          \
    static inline void harness_end_##name(void *p)                                                           \
    {                                                                                                        \
        name##_fini(p);                                                                                      \
    }                                                                                                        \
    static inline void name##_begin(type *p)                                                                 \
    {                                                                                                        \
        name##_init(p);                                                                                      \
        harness_defer(harness_end_##name, p);                                                                \
    }                                                                                                        \
    struct harness /* the caller's semicolon follows */

/* Each case has a new `variable` of that fixture, by start(). */
#define HARNESS_EACH(name, type, variable)                                                                   \
    static type variable;                                                                                    \
    static inline int start(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        name##_begin(&variable);                                                                             \
        return 0;                                                                                            \
    }                                                                                                        \
    struct harness /* the caller's semicolon follows */

#endif
