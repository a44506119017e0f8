/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of one object, and the server in memory that they ask. */
#ifndef DUDA_DEV_TESTS_H
#define DUDA_DEV_TESTS_H

#include <monkey/test_client.h>

/* Runs those from `first` on, and says how they went; answers how many failed. `prefix` is the name of their
 * file. */
size_t tester_tests_run(struct mk_server *s, size_t first, const char *prefix);
size_t tester_tests_count(void);

#endif
