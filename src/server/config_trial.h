/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration on its way to serve. Loading it runs code of plugins, so a process of its own tries that
 * first; then plugins prepare for it. The loop turns meanwhile: neither may hold the master. */
#ifndef MK_SERVER_CONFIG_TRIAL_H
#define MK_SERVER_CONFIG_TRIAL_H

#include "net/loop.h"
#include "setup/config_generation.h"

struct mk_config_trial {
    struct mk_loop *loop;
    struct mk_timer trial_timer, prepare_timer;
    const struct mk_config_source *origin;
    pid_t pid;       /* of the trial; 0: none */
    bool is_late;    /* and it was killed for that */
    int problems_fd; /* a file in memory: the mistakes that it has found */
    /* Of the configuration whose plugins prepare; NULL: none. */
    struct mk_config_generation *generation;
    struct mk_conf_report report; /* and `arena` is its memory */
    struct mk_arena arena;
    /* The trial has ended: `e` as mk_crash_probe_run() has it. `said`: mistakes; empty: it found none. */
    void (*on_trial_done)(struct mk_config_trial *a, int e, mk_str problems);
    void (*on_plugins_prepared)(struct mk_config_trial *a, bool ok);
    /* Called after either of them: another attempt may begin. */
    void (*on_over)(struct mk_config_trial *a);
};

void mk_config_trial_init(struct mk_config_trial *a, struct mk_loop *loop,
                          const struct mk_config_source *origin);
/* Starts a trial, after which on_trial_done() is called. */
mk_err mk_config_trial_start(struct mk_config_trial *a) MK_MUST_USE;
/* A child has ended that was none of the workers. */
void mk_config_trial_reap(struct mk_config_trial *a, pid_t pid, int status);
/* Has the plugins prepare; on_plugins_prepared() is called then, here or later. */
void mk_config_trial_prepare_plugins(struct mk_config_trial *a, struct mk_config_generation *g);
/* Ends what goes on, without a call. */
void mk_config_trial_stop(struct mk_config_trial *a);

#endif
