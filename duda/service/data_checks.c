/* SPDX-License-Identifier: Apache-2.0 */
#include "service/data_checks.h"

bool duda_data_checks_add(struct duda_data_checks *c, duda_fn *fn, const char *(*check)(const void *data))
{
    if (c->n == DUDA_DATA_CHECKS_MAX)
        return false;
    c->v[c->n].fn = fn;
    c->v[c->n++].check = check;
    return true;
}

const char *duda_data_checks_error(const struct duda_data_checks *c, duda_fn *fn, const void *data)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].fn == fn)
            return c->v[i].check(data);
    return NULL;
}
