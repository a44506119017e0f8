/* SPDX-License-Identifier: Apache-2.0 */
/* The worker processes of a server as each of them sees all: a place for each, in memory that they share with
 * the master. */
#ifndef MK_SERVER_PLACES_H
#define MK_SERVER_PLACES_H

#include "proto/counters.h"

/* Written by the master, the counters by the worker that has the place. */
struct mk_place {
    int64_t pid;      /* 0: nobody has it now */
    uint64_t started; /* seconds since 1970; 0: nobody ever had it, nor any behind it */
    bool leaving;     /* was told to end */
    struct mk_counters counters;
};

struct mk_places {
    struct mk_place *at;
    size_t n;
    int64_t master, began; /* its process, and when it began */
};

#endif
