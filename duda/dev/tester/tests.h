/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of one object against an in-memory server. */
#ifndef DUDA_DEV_TESTS_H
#define DUDA_DEV_TESTS_H

#include <monkey/test_client.h>

/* Runs the tests from index `first` on and prints their results; `prefix` is the name of their file. Returns
 * the number of failures. */
size_t tester_tests_run(struct mk_server *s, size_t first, const char *prefix);
size_t tester_tests_count(void);

#endif
