/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans up after test cases. The setup function of a test calls NAME_begin() of each fixture that it needs;
 * harness_stop(), the teardown, ends the fixtures in reverse order:
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
 *     cmocka_unit_test_setup_teardown(site_existing_page_is_found, start, harness_stop)
 *
 * HARNESS_EACH(site, struct site, site) defines the same setup without the site_add() call. */
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

/* Registers end(p) as cleanup of the test case. */
static inline void harness_defer(void (*end)(void *p), void *p)
{
    MK_ASSERT(harness.n < HARNESS_MAX);
    harness.at[harness.n].end = end;
    harness.at[harness.n++].p = p;
}

/* The teardown function of all test cases. */
static inline int harness_stop(void **state)
{
    (void)state;
    while (harness.n) {
        harness.n--;
        harness.at[harness.n].end(harness.at[harness.n].p);
    }
    return 0;
}

/* Defines NAME_begin(), which calls NAME_init() and registers NAME_fini() as cleanup of the test case. */
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
    struct harness /* absorbs the caller's semicolon */

/* Defines start(), which creates a new `variable` of that fixture for each test case. */
#define HARNESS_EACH(name, type, variable)                                                                   \
    static type variable;                                                                                    \
    static inline int start(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        name##_begin(&variable);                                                                             \
        return 0;                                                                                            \
    }                                                                                                        \
    struct harness /* absorbs the caller's semicolon */

#endif
