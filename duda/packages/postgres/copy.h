/* SPDX-License-Identifier: Apache-2.0 */
/* A COPY of a handler. */
#ifndef DUDA_POSTGRES_COPY_H
#define DUDA_POSTGRES_COPY_H

#include "pool.h"
#include "text_format.h"

struct duda_postgres_copy {
    struct duda_ctx *d;
    struct postgres_pool *pool;
    struct postgres_conn *conn; /* valid only while conn->copying is this COPY: the connection may be gone */
    struct duda_sql_result *result;
    const char *text;
    uint64_t began_us;
    bool is_begun, is_in, in_transaction, is_over;
    int error;
    size_t unsent; /* bytes buffered in libpq to fill a block */
    unsigned n_notices;
    char *row;          /* allocated by libpq */
    struct mk_buf line; /* a row of values */
};

#endif
