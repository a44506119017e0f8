/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the results of tests, and writes them as JUnit XML, which CI systems read. */
#ifndef DUDA_DEV_JUNIT_H
#define DUDA_DEV_JUNIT_H

#include <monkey/buf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dev_junit {
    struct mk_buf cases; /* <testcase> elements */
    size_t n, failed;
    uint64_t us; /* sum of the times */
};

void dev_junit_init(struct dev_junit *j);
void dev_junit_free(struct dev_junit *j);
/* Adds a test; `output` explains a failure. */
void dev_junit_add(struct dev_junit *j, const char *file, const char *name, bool ok, uint64_t us,
                   mk_str output);
/* Writes the file. On failure, returns false and sets errno. */
bool dev_junit_write(const struct dev_junit *j, const char *path);

#endif
