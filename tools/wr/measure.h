/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one shot: starts the client, samples the server, parses the client's output. */
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
    const char *title; /* for the progress line */
};

/* Returns the delay of the first sample, which is shorter than the interval, because a short shot may end
 * before the first interval does. */
uint64_t wr_measure_first_sample_delay_us(uint64_t interval_us);
/* On failure, prints a message and returns false. */
bool wr_measure_run(const struct wr_measure *f, struct wr_measurement *out) MK_MUST_USE;
/* Like wr_measure_run(), but counts system calls per request; WR_UNKNOWN with a reason if that is
 * impossible. */
bool wr_measure_syscalls(const struct wr_measure *f, double *per_request, const char **why) MK_MUST_USE;
/* Runs the client for `us` microseconds without measuring. */
bool wr_measure_warm_up(const struct wr_measure *f, uint64_t us) MK_MUST_USE;

#endif
