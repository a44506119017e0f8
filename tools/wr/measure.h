/* SPDX-License-Identifier: Apache-2.0 */
/* One shot: runs the client, watches the server, reads what the client says. */
#ifndef WR_MEASURE_H
#define WR_MEASURE_H

#include "wr/client_type.h"
#include "wr/measurement.h"
#include "wr/process_tree.h"

struct wr_measure {
    struct wr_process_tree *server;
    const struct wr_client_type *kind;
    char *const *words;
    uint64_t interval_us, limit_us;
    const char *title; /* of the line of progress */
};

/* When a shot is looked at first: sooner than at the interval, since short ones are over then. */
uint64_t wr_measure_first_sample_us(uint64_t interval_us);
/* False: it failed, and reported why. */
bool wr_measure_run(const struct wr_measure *f, struct wr_measurement *out) MK_MUST_USE;
/* The same, for the number of system calls for each request; below 0 with a reason when they cannot be
 * counted. */
bool wr_measure_syscalls(const struct wr_measure *f, double *per_request, const char **why) MK_MUST_USE;
/* Runs the client for some time and measures nothing. */
bool wr_measure_warm_up(const struct wr_measure *f, uint64_t us) MK_MUST_USE;

#endif
