/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep: the shots of all steps. */
#ifndef WR_SWEEP_H
#define WR_SWEEP_H

#include "wr/command.h"
#include "wr/measurement.h"
#include "wr/options.h"
#include "wr/samples.h"

struct wr_step {
    unsigned concurrency; /* 0: unknown */
    struct wr_measurement *shots;
    size_t n;
    double syscalls; /* per request, from an additional shot */
};

struct wr_sweep {
    const struct wr_options *options;
    struct wr_command command;
    struct wr_process_tree server;
    struct mk_arena *arena;
    char server_name[64];
    mk_str url; /* may be MK_STR_NULL */
    bool was_checked;
    struct wr_check_result checked;
    struct wr_step *steps;
    size_t n_steps, n_begun; /* finished steps, and started steps */
    uint64_t started_us, ended_us;
    bool had_error_responses; /* over 1 % error responses in a step, and --status does not expect them */
};

/* Returns the range of one metric over the shots of a step. */
struct wr_range wr_step_metric_range(const struct wr_step *s,
                                     double (*of)(const struct wr_measurement *shot));

struct wr_sweep_callback {
    void *data;
    bool (*on_step)(void *data, const struct wr_sweep *sweep, const struct wr_step *step);
};

/* Applies the options, finds the server and checks its response. */
bool wr_sweep_init(struct wr_sweep *s, const struct wr_options *o, struct mk_arena *arena) MK_MUST_USE;
/* On failure, prints a message and returns false. */
bool wr_sweep_run(struct wr_sweep *s, const struct wr_sweep_callback *listener) MK_MUST_USE;
void wr_sweep_fini(struct wr_sweep *s);

#endif
