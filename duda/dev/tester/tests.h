/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of one object, each in a process of its own with a server of its own. */
#ifndef DUDA_DEV_TESTS_H
#define DUDA_DEV_TESTS_H

#include <stddef.h>

/* The tests to run. */
struct tester_selection {
    const char *prefix; /* name of the test file */
    /* Only tests whose name PREFIX.NAME contains the pattern or, with `*`, matches it; "": all tests. */
    const char *pattern;
    size_t first;       /* index of the first test */
    const char *folder; /* each test gets a folder in this one */
};

/* Runs the tests, and prints their results. Returns 0 if all tests passed, 1 if one failed, and 2 if the
 * service cannot be tested. If a test crashes or exits, this process ends in the same way. */
int tester_tests_run(const struct tester_selection *selection);
size_t tester_tests_count(void);

#endif
