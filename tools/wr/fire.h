/* SPDX-License-Identifier: Apache-2.0 */
/* One shot: runs the client, watches the server, reads what the client says. */
#ifndef WR_FIRE_H
#define WR_FIRE_H

#include "wr/family.h"
#include "wr/kind.h"
#include "wr/shot.h"

struct wr_fire {
    struct wr_family *server;
    const struct wr_kind *kind;
    char *const *words;
    uint64_t interval_us, limit_us;
    const char *title; /* of the line of progress */
};

/* When a shot is looked at first: sooner than at the interval, since short ones are over then. */
uint64_t wr_fire_first_look(uint64_t interval_us);
/* False: it failed, and reported why. */
bool wr_fire_shot(const struct wr_fire *f, struct wr_shot *out) MK_MUST_USE;
/* The same, for the number of system calls for each request; below 0 with a reason when they cannot be
 * counted. */
bool wr_fire_counting_syscalls(const struct wr_fire *f, double *per_request, const char **why) MK_MUST_USE;
/* Runs the client for some time and measures nothing. */
bool wr_fire_warm_up(const struct wr_fire *f, uint64_t us) MK_MUST_USE;

#endif
