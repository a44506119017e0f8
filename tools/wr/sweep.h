/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep: the shots of all steps, and its listeners. */
#ifndef WR_SWEEP_H
#define WR_SWEEP_H

#include "wr/command.h"
#include "wr/measurement.h"
#include "wr/options.h"
#include "wr/samples.h"

struct wr_step {
    unsigned concurrency; /* 0: not known */
    struct wr_measurement *shots;
    size_t n;
    double syscalls; /* for each request, from a shot of its own */
};

struct wr_sweep {
    const struct wr_options *options;
    struct wr_command command;
    struct wr_process_tree server;
    struct mk_arena *arena;
    char server_name[64];
    mk_str url; /* may be absent */
    bool was_checked;
    struct wr_check_result checked;
    struct wr_step *steps;
    size_t n_steps, n_begun; /* those that are done, and with the one that is not */
    uint64_t started_us, ended_us;
    bool had_bad_answers; /* more than one in a hundred of a shot, and no option expects that status */
};

/* One number of all shots of a step. */
struct wr_range wr_step_range(const struct wr_step *s, double (*of)(const struct wr_measurement *shot));

struct wr_sweep_callback {
    void *data;
    bool (*on_step)(void *data, const struct wr_sweep *sweep, const struct wr_step *step);
};

/* Fills what the command line tells, finds the server and checks its answer. */
bool wr_sweep_init(struct wr_sweep *s, const struct wr_options *o, struct mk_arena *arena) MK_MUST_USE;
/* False: something failed, and was reported. */
bool wr_sweep_run(struct wr_sweep *s, const struct wr_sweep_callback *listener) MK_MUST_USE;
void wr_sweep_fini(struct wr_sweep *s);

#endif
