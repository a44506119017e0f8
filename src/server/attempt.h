/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration on its way to serve. Loading it runs code of plugins, so a process of its own tries that
 * first; then plugins prepare for it. The loop turns meanwhile: neither may hold the master. */
#ifndef MK_SERVER_ATTEMPT_H
#define MK_SERVER_ATTEMPT_H

#include "net/loop.h"
#include "setup/generation.h"

struct mk_attempt {
    struct mk_loop *loop;
    struct mk_timer trial_timer, prepare_timer;
    const struct mk_origin *origin;
    pid_t pid;    /* of the trial; 0: none */
    bool is_late; /* and it was killed for that */
    int said_fd;  /* a file in memory: the mistakes that it has found */
    /* Of the configuration whose plugins prepare; NULL: none. */
    struct mk_generation *generation;
    struct mk_conf_report report; /* and `arena` is its memory */
    struct mk_arena arena;
    /* The trial has ended: `e` as mk_crash_probe_run() has it. `said`: mistakes; empty: it found none. */
    void (*on_tried)(struct mk_attempt *a, int e, mk_str said);
    void (*on_prepared)(struct mk_attempt *a, bool ok);
    /* Called after either of them: another attempt may begin. */
    void (*on_over)(struct mk_attempt *a);
};

void mk_attempt_init(struct mk_attempt *a, struct mk_loop *loop, const struct mk_origin *origin);
/* Starts a trial, after which on_tried() is called. */
mk_err mk_attempt_try(struct mk_attempt *a) MK_MUST_USE;
/* A child has ended that was none of the workers. */
void mk_attempt_bury(struct mk_attempt *a, pid_t pid, int status);
/* Has the plugins prepare; on_prepared() is called then, here or later. */
void mk_attempt_prepare(struct mk_attempt *a, struct mk_generation *g);
/* Ends what goes on, without a call. */
void mk_attempt_stop(struct mk_attempt *a);

#endif
