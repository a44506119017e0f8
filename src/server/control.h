/* SPDX-License-Identifier: Apache-2.0 */
/* The line between the master and one worker process: how far it is one way, new log files the other. */
#ifndef MK_SERVER_CONTROL_H
#define MK_SERVER_CONTROL_H

#include "base/err.h"
#include "base/str.h"

enum mk_control_kind {
    MK_CONTROL_NONE,
    MK_CONTROL_READY,  /* worker: I serve */
    MK_CONTROL_LOG,    /* master: from now on write the log `where` to this descriptor */
    MK_CONTROL_HEIR,   /* master: end like after SIGQUIT, but another one takes what waits in the queues */
    MK_CONTROL_DRAINS, /* worker: I accept no more */
};

enum { MK_CONTROL_TEXT = 4096 };

struct mk_control_message {
    enum mk_control_kind kind;
    char where[MK_CONTROL_TEXT]; /* ends with a NUL */
    int fd;                      /* the receiver's to close; -1: none */
};

/* Both ends, non-blocking, each closed by an exec. */
mk_err mk_control_open(int *master_end, int *worker_end) MK_MUST_USE;
mk_err mk_control_send(int end, enum mk_control_kind kind, mk_str where, int fd) MK_MUST_USE;
/* -EAGAIN: nothing there; -EPIPE: the other end is gone. */
mk_err mk_control_receive(int end, struct mk_control_message *m) MK_MUST_USE;

#endif
