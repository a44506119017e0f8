/* SPDX-License-Identifier: Apache-2.0 */
/* The load clients with output that wr can parse. Runs no programs. */
#ifndef WR_CLIENT_TYPE_H
#define WR_CLIENT_TYPE_H

#include "base/str.h"
#include "wr/result.h"

struct wr_client_type {
    const char *name; /* the name of the program */
    /* The option for the number of connections; the number is the next argument. */
    const char *concurrency;
    /* Options inserted after the program's name for more detailed output, NULL-terminated; not inserted if
     * the command already contains one of `has`. */
    const char *adds[3];
    const char *has[3];
    double bytes_step; /* the largest rounding error of the reported bytes */
    /* Parses stdout and stderr in `output`, in any order, or with lines interleaved. If there is no reliable
     * result, returns false and sets `why` to the continuation of "cannot read the output of wrk: ". */
    bool (*read)(mk_str output, struct wr_result *out, const char **why);
};

/* Finds the client by the basename of the program; NULL if wr does not support it. */
const struct wr_client_type *wr_client_type_find(mk_str program);
/* Returns all clients; the last entry has no name. */
const struct wr_client_type *wr_client_type_all(void);

#endif
