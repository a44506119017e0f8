/* SPDX-License-Identifier: Apache-2.0 */
/* Subprocesses of one worker. */
#ifndef MK_WORKER_SUBPROCESS_TYPE_H
#define MK_WORKER_SUBPROCESS_TYPE_H

#include "base/list.h"
#include "base/log.h"
#include "event/loop.h"
#include "worker/spawner.h"

struct mk_subprocesses {
    struct mk_loop *loop;
    struct mk_log *log;
    struct mk_spawner spawner; /* fd -1: none, or lost */
    struct mk_fd_watch watch;
    struct mk_list list;
    uint32_t last_id;
    void (*on_lost)(struct mk_subprocesses *c); /* called when the spawner is gone; may be NULL */
};

#endif
