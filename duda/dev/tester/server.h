/* SPDX-License-Identifier: Apache-2.0 */
/* The server with the service under test. */
#ifndef DUDA_DEV_TESTER_SERVER_H
#define DUDA_DEV_TESTER_SERVER_H

#include <stdbool.h>

enum { TESTER_OK = 0, TESTER_FAILED = 1, TESTER_BROKEN = 2 };

/* What the server loads: values of `Load` and `DocumentRoot`, and a configuration file; the latter two may be
 * empty. */
struct tester_service {
    const char *load, *root, *include;
};

void tester_server_set_service(const struct tester_service *service);
/* Sets the folder of the test, and a flag that is set when the service does not start. */
void tester_server_set_test(const char *folder, volatile bool *is_broken);
/* Prints "monkey test: PROBLEM", and returns TESTER_BROKEN. */
int tester_print_error(const char *problem);

#endif
