/* SPDX-License-Identifier: Apache-2.0 */
/* Fixtures of test cases. setup() creates the fixtures that a test case needs, and the harness frees them in
 * reverse order when the test case ends:
 *
 *     static struct site site;
 *
 *     static void setup(void)
 *     {
 *         site_setup(&site);
 *         site_add(&site, "page", MK_STR("content"));
 *     }
 *     ...
 *     fixture_test(site_existing_page_is_found, setup)
 *
 * fixture_test() is in unit/test.h: this file is independent of cmocka, since fuzz targets also use it. */
#ifndef MK_UNIT_HARNESS_H
#define MK_UNIT_HARNESS_H

#include "base/assert.h"

enum { HARNESS_MAX = 32 };

struct harness {
    unsigned n;
    struct {
        void (*free)(void *p);
        void *p;
    } at[HARNESS_MAX];
};

static struct harness harness;

/* Registers free(p) as a cleanup of the test case. */
static inline void harness_defer(void (*free)(void *p), void *p)
{
    MK_ASSERT(harness.n < HARNESS_MAX);
    harness.at[harness.n].free = free;
    harness.at[harness.n++].p = p;
}

/* Runs the cleanups of the test case, the last one first. */
static inline int harness_teardown(void **state)
{
    (void)state;
    while (harness.n) {
        harness.n--;
        harness.at[harness.n].free(harness.at[harness.n].p);
    }
    return 0;
}

/* Defines NAME_setup(), which calls NAME_init() and registers NAME_fini() as cleanup of the test case. */
#define HARNESS_FIXTURE(name, type)                                                                          \
    static inline void name##_teardown(void *p)                                                              \
    {                                                                                                        \
        name##_fini(p);                                                                                      \
    }                                                                                                        \
    static inline void name##_setup(type *p)                                                                 \
    {                                                                                                        \
        name##_init(p);                                                                                      \
        harness_defer(name##_teardown, p);                                                                   \
    }                                                                                                        \
    struct harness /* absorbs the caller's semicolon */

#endif
