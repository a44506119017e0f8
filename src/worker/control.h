/* SPDX-License-Identifier: Apache-2.0 */
/* Control channel between the master and one worker process. Neither end ever blocks. */
#ifndef MK_WORKER_CONTROL_H
#define MK_WORKER_CONTROL_H

#include "base/err.h"
#include "base/str.h"

enum mk_control_kind {
    MK_CONTROL_NONE,
    MK_CONTROL_READY,               /* from worker: serving */
    MK_CONTROL_DRAINS,              /* from worker: accepts no more connections */
    MK_CONTROL_DRAIN_FOR_SUCCESSOR, /* from master: shut down as on SIGQUIT, but leave queued connections to
                                     * another worker */
    MK_CONTROL_LOG,                 /* from master: write the log `text` to the descriptor `fd` from now on */
    MK_CONTROL_ROTATE,              /* from worker: the log `text` has reached its maximum size */
    MK_CONTROL_RELOAD,              /* from worker: reload the configuration */
    MK_CONTROL_RELOAD_BY,           /* from worker: the administrator `text` reloads the configuration, which
                                     * must be confirmed within `number` seconds; 0: need not */
    MK_CONTROL_CONFIRM,             /* from worker: the administrator `text` confirms the configuration */
    MK_CONTROL_ROLLBACK,            /* from worker: the administrator `text` wants configuration `number` */
    MK_CONTROL_REPLACE,             /* from worker: replace this worker */
    MK_CONTROL_LOG_LEVEL,           /* from worker: set the level to `number` in all processes; from master:
                                     * the level is now `number` */
    MK_CONTROL_REPLACED, /* from master: another worker has this worker's index and receives the plugin
                          * messages for that index */
    MK_CONTROL_EXIT,     /* from master: another worker has exited */
    MK_CONTROL_KINDS
};

enum { MK_CONTROL_TEXT = 4096 }; /* maximum path length */

struct mk_control_message {
    enum mk_control_kind kind;
    int number;
    uint64_t id; /* of an administrator's order; 0: none */
    mk_str text;
    int fd; /* -1: none; the sender keeps its own descriptor, the receiver must close its copy */
};

/* Buffer for a received message. */
struct mk_control_buffer {
    char bytes[16 + MK_CONTROL_TEXT];
};

/* Creates both ends, which are non-blocking and close-on-exec. */
mk_err mk_control_open(int *master_end, int *worker_end) MK_MUST_USE;
mk_err mk_control_send(int end, const struct mk_control_message *m) MK_MUST_USE;
/* Sends a message without text. */
mk_err mk_control_send_kind(int end, enum mk_control_kind kind) MK_MUST_USE;
/* Receives a message. -EAGAIN: there is none; -EPIPE: the other end is closed; -EBADMSG: a malformed message
 * was skipped. */
mk_err mk_control_receive(int end, struct mk_control_buffer *buf, struct mk_control_message *m) MK_MUST_USE;

#endif
