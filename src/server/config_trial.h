/* SPDX-License-Identifier: Apache-2.0 */
/* Trial of a new configuration. Loading runs plugin code, so a separate process loads the configuration
 * first. After the master has loaded it as well, the plugins prepare. The master's loop keeps running:
 * neither the trial nor the preparation may block it. */
#ifndef MK_SERVER_CONFIG_TRIAL_H
#define MK_SERVER_CONFIG_TRIAL_H

#include "event/loop.h"
#include "setup/config_generation.h"

struct mk_config_trial {
    struct mk_loop *loop;
    struct mk_timer trial_timer, prepare_timer;
    struct mk_fd_watch prepare_watch;
    const struct mk_config_source *origin;
    pid_t pid;       /* pid of the trial; 0: none */
    bool is_late;    /* the trial was killed because it took too long */
    int problems_fd; /* memory file with the errors that the trial found */
    /* The generation whose plugins prepare; NULL: none. */
    struct mk_config_generation *generation;
    struct mk_conf_report report; /* allocated in `arena` */
    struct mk_arena arena;
    /* Called when the trial has ended with the result `e`, as from mk_crash_probe_run(). `problems`: the
     * errors and warnings if the configuration is invalid, or else empty. */
    void (*on_trial_done)(struct mk_config_trial *a, int e, mk_str problems);
    void (*on_plugins_prepared)(struct mk_config_trial *a, bool ok);
    /* Called after either callback: another trial may begin. */
    void (*on_over)(struct mk_config_trial *a);
};

void mk_config_trial_init(struct mk_config_trial *a, struct mk_loop *loop,
                          const struct mk_config_source *origin);
/* Starts a trial; on_trial_done() is called at its end. */
mk_err mk_config_trial_start(struct mk_config_trial *a) MK_MUST_USE;
/* Call it when a child that is not a worker has exited. Does nothing if the child is not the trial. */
void mk_config_trial_reap(struct mk_config_trial *a, pid_t pid, int status);
/* Lets the plugins prepare. Calls on_plugins_prepared() when all are ready or one has failed, perhaps before
 * returning. */
void mk_config_trial_prepare_plugins(struct mk_config_trial *a, struct mk_config_generation *g);
/* Stops the trial or the preparation in progress, without callbacks. */
void mk_config_trial_stop(struct mk_config_trial *a);

#endif
