/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests that have been added by objects of tests, against a service behind a unix socket. */
#ifndef DUDA_DEV_TESTER_H
#define DUDA_DEV_TESTER_H

#include <stddef.h>

/* Says on standard output how each went: "ok NAME", "not ok NAME". Answers how many failed. */
size_t dev_tester_run(const char *socket, const char *prefix);
/* How many have been added. */
size_t dev_tester_count(void);

#endif
