/* SPDX-License-Identifier: Apache-2.0 */
/* The worker processes of a server as each of them sees all: a place for each, and what became of the server
 * since it began, in memory that they share with the master. */
#ifndef MK_SERVER_PLACES_H
#define MK_SERVER_PLACES_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"
#include "proto/counters.h"

/* Written by the master, the counters by the worker that has the place. */
struct mk_place {
    int64_t pid;      /* 0: nobody has it now */
    uint64_t started; /* seconds since 1970; 0: nobody ever had it, nor any behind it */
    bool leaving;     /* was told to end */
    struct mk_counters counters;
};

enum { MK_HISTORY_WHY = 4096 };

/* Written by the master, and never read by it: a worker could write to it, too. */
struct mk_history {
    struct mk_counters past; /* of those whose places others have taken */
    atomic_uint_fast64_t reloads, failed_reloads;
    atomic_bool reloading;
    char why[MK_HISTORY_WHY]; /* the last one failed; ends with a NUL */
};

struct mk_places {
    struct mk_place *at;
    size_t n;
    int64_t master, began;      /* its process, and when it began */
    struct mk_history *history; /* NULL where there is no master */
};

mk_err mk_places_open(struct mk_places *p, size_t n) MK_MUST_USE;
void mk_places_close(struct mk_places *p);

/* Somebody else gets it. */
void mk_places_give(struct mk_places *p, struct mk_place *place, uint64_t now);

/* A configuration is loaded anew; it serves; the old one stays, and why: lines. */
void mk_history_reload(struct mk_history *h);
void mk_history_reloaded(struct mk_history *h);
void mk_history_stayed(struct mk_history *h, mk_str why);

#endif
