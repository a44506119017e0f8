/* SPDX-License-Identifier: Apache-2.0 */
/* A script that runs: its pipes, its end, and what becomes of it when its request is over before it is. It
 * knows bytes, and nothing of what they mean. */
#ifndef CGI_PROCESS_H
#define CGI_PROCESS_H

#include "environ.h"
#include "errors.h"
#include "pool.h"

struct cgi_process {
    struct cgi_process *next, **at; /* of its pool, until it has ended */
    struct cgi_pool *pool;
    const struct cgi_settings *settings;
    struct mk_request *request; /* resumed when something happens; NULL: it is over */
    struct mk_child *child;     /* NULL: it has ended, with `status` */
    struct mk_alarm *alarm;     /* of its forced end */
    int status;                 /* of waitpid(2), or a negated errno value: it could not be started */
    bool told;                  /* to end */
    int in, out;                /* our ends of its pipes; -1: closed */
    struct mk_watcher *in_ready, *out_ready;
    size_t rest; /* of its output, when it has ended */
    struct cgi_errors errors;
    char *name; /* for messages */
};

/* Starts it in the place of the ticket, which is valid. `has_input`: it will be written to. NULL: *error. */
struct cgi_process *cgi_process_start(struct cgi_pool *pool, struct cgi_ticket *ticket,
                                      const struct cgi_script *script, const struct cgi_settings *settings,
                                      const struct cgi_environ *e, bool has_input, int *error);

/* Its output: bytes, 0 at the end, -EAGAIN or another error. What somebody else writes after its own end is
 * not waited for. */
ssize_t cgi_process_read(struct cgi_process *p, char *room, size_t cap);
/* Its input: how much of it was taken, -EAGAIN; -EPIPE when it wants no more. */
ssize_t cgi_process_write(struct cgi_process *p, mk_str text);
void cgi_process_end_input(struct cgi_process *p);

/* Asks it to end; a moment later it is killed. */
void cgi_process_stop(struct cgi_process *p);
/* The request is over. Who has done his work may go on for a while, others are stopped. `p` is not to be used
 * any more. */
void cgi_process_leave(struct cgi_process *p, bool has_answered);
/* At once, when the worker stops. */
void cgi_process_kill(struct cgi_process *p);

/* How it ended, in words. */
void cgi_process_describe_end(const struct cgi_process *p, struct mk_buf *out);

#endif
