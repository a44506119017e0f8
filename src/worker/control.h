/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel between the master and one worker process. Neither end ever blocks. */
#ifndef MK_WORKER_CONTROL_H
#define MK_WORKER_CONTROL_H

#include "base/err.h"
#include "base/str.h"

enum mk_control_kind {
    MK_CONTROL_NONE,
    MK_CONTROL_READY,               /* worker: it serves */
    MK_CONTROL_DRAINS,              /* worker: it accepts no more connections */
    MK_CONTROL_DRAIN_FOR_SUCCESSOR, /* master: end as on SIGQUIT, but leave queued connections to another worker */
    MK_CONTROL_LOG,                 /* master: write the log `text` to this descriptor from now on */
    MK_CONTROL_ROTATE,              /* worker: the log `text` has reached its maximum size */
    MK_CONTROL_RELOAD,              /* worker: reload the configuration */
    MK_CONTROL_LOG_LEVEL,           /* worker: set it to `number` in all processes; master: it is set */
    MK_CONTROL_REPLACED, /* master: another worker has its place, and gets the messages of plugins for it */
    MK_CONTROL_EXIT,     /* master: another worker has ended */
    MK_CONTROL_KINDS
};

enum { MK_CONTROL_TEXT = 4096 }; /* of the longest path */

struct mk_control_message {
    enum mk_control_kind kind;
    int number;
    mk_str text;
    int fd; /* -1: none; the sender keeps its own, the receiver must close its copy */
};

/* Storage for a received message. */
struct mk_control_buffer {
    char bytes[8 + MK_CONTROL_TEXT];
};

/* Both ends, non-blocking and close-on-exec. */
mk_err mk_control_open(int *master_end, int *worker_end) MK_MUST_USE;
mk_err mk_control_send(int end, const struct mk_control_message *m) MK_MUST_USE;
/* Sends a message of that kind without text. */
mk_err mk_control_send_kind(int end, enum mk_control_kind kind) MK_MUST_USE;
/* -EAGAIN: no message; -EPIPE: the other end is closed; -EBADMSG: malformed and skipped. */
mk_err mk_control_receive(int end, struct mk_control_buffer *buf, struct mk_control_message *m) MK_MUST_USE;

#endif
