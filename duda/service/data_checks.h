/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the `.data` of routes and middleware: see duda_data_declare() in duda/middleware.h. */
#ifndef DUDA_SERVICE_DATA_CHECKS_H
#define DUDA_SERVICE_DATA_CHECKS_H

#include <duda/middleware.h>

enum { DUDA_DATA_CHECKS_MAX = 32 };

struct duda_data_checks {
    struct {
        duda_fn *fn;
        const char *(*check)(const void *data);
    } v[DUDA_DATA_CHECKS_MAX];
    size_t n;
};

/* Returns false if there are too many. */
bool duda_data_checks_add(struct duda_data_checks *c, duda_fn *fn, const char *(*check)(const void *data));

/* Returns NULL, or why the function cannot use the data. */
const char *duda_data_checks_error(const struct duda_data_checks *c, duda_fn *fn, const void *data);

#endif
