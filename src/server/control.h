/* SPDX-License-Identifier: Apache-2.0 */
/* The line between the master and one worker process: what each of them has to tell the other, and what
 * plugins tell each other through the master. Neither end ever waits. */
#ifndef MK_SERVER_CONTROL_H
#define MK_SERVER_CONTROL_H

#include "base/err.h"
#include "base/str.h"

enum mk_control_kind {
    MK_CONTROL_NONE,
    MK_CONTROL_READY,     /* worker: I serve */
    MK_CONTROL_DRAINS,    /* worker: I accept no more */
    MK_CONTROL_HEIR,      /* master: end like after SIGQUIT, but another one takes what waits in the queues */
    MK_CONTROL_LOG,       /* master: from now on write the log `text` to this descriptor */
    MK_CONTROL_ROTATE,    /* worker: the log `text` has grown to its size */
    MK_CONTROL_RELOAD,    /* worker: load the configuration anew */
    MK_CONTROL_LOG_LEVEL, /* worker: let it be `number` for all of us; master: it is */
    MK_CONTROL_MESSAGE,   /* `text` is for the plugin `name`; worker: in the worker `number` */
    MK_CONTROL_KINDS
};

enum { MK_CONTROL_NAME = 255, MK_CONTROL_TEXT = 32 * 1024 };

struct mk_control_message {
    enum mk_control_kind kind;
    int number;
    mk_str name, text;
    int fd; /* -1: none; the sender's stays his, the receiver's is his to close */
};

/* Where a message is kept that was received. */
struct mk_control_room {
    char bytes[8 + MK_CONTROL_NAME + MK_CONTROL_TEXT];
};

/* Both ends, non-blocking, each closed by an exec. */
mk_err mk_control_open(int *master_end, int *worker_end) MK_MUST_USE;
mk_err mk_control_send(int end, const struct mk_control_message *m) MK_MUST_USE;
/* Only that. */
mk_err mk_control_say(int end, enum mk_control_kind kind) MK_MUST_USE;
/* -EAGAIN: nothing there; -EPIPE: the other end is gone; -EBADMSG: not a message, it was passed over. */
mk_err mk_control_receive(int end, struct mk_control_room *room, struct mk_control_message *m) MK_MUST_USE;

#endif
