/* SPDX-License-Identifier: Apache-2.0 */
/* The load clients whose output wr understands. Runs nothing. */
#ifndef WR_CLIENT_TYPE_H
#define WR_CLIENT_TYPE_H

#include "base/str.h"
#include "wr/result.h"

struct wr_client_type {
    const char *name; /* the usual name of the program */
    const char
        *concurrency; /* the option that takes how many connections, as an argument before its number */
    /* What tells more when it is put right after the program's name, up to NULL; not to be put when one of
     * `has` is in the command already. */
    const char *adds[3];
    const char *has[3];
    double bytes_step; /* it rounds what it received to so many bytes, at the most */
    /* `output` is stdout and stderr, in any order or mixed by lines. False when it holds no result that can
     * be trusted: `why` says what is missing, in words that follow "cannot read the output of wrk: ". */
    bool (*read)(mk_str output, struct wr_result *out, const char **why);
};

/* By the last part of the program's path; NULL when it is none that we know. */
const struct wr_client_type *wr_client_type_find(mk_str program);
/* All of them, up to one without a name: for help and messages. */
const struct wr_client_type *wr_client_type_all(void);

#endif
