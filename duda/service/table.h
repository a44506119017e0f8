/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a service, made ready to be looked up. No request here. */
#ifndef DUDA_SERVICE_TABLE_H
#define DUDA_SERVICE_TABLE_H

#include "service/duda_type.h"

/* What a path leads to. */
struct duda_found {
    const struct duda_route *route; /* NULL: none; then `others` says why */
    bool others;                    /* there are routes of other methods */
    struct duda_param_value params[DUDA_PARAMS_MAX];
    size_t n_params;
};

void duda_table_find(const struct duda_route *routes, mk_str method, mk_str path, struct duda_found *out);
/* The methods that the path has, as a value of Allow. */
void duda_table_allow(const struct duda_route *routes, mk_str path, struct mk_buf *out);

#endif
