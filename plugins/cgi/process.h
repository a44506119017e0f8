/* SPDX-License-Identifier: Apache-2.0 */
/* A script that runs: its pipes, its end, and its time after its request. It moves bytes and does not know
 * what they mean. */
#ifndef CGI_PROCESS_H
#define CGI_PROCESS_H

#include "environ.h"
#include "pool.h"
#include "stderr.h"

struct cgi_process {
    struct cgi_process *next, **at; /* of its pool, until it has ended */
    struct cgi_pool *pool;
    struct cgi_client *client; /* the pool's */
    const struct cgi_settings *settings;
    struct mk_request *request;  /* resumed when something happens; NULL: it is over */
    struct mk_request *past;     /* what logs say of it then; NULL: memory was out */
    struct mk_subprocess *child; /* NULL: it has ended, with `status` */
    struct mk_timer timer;       /* of its forced end */
    int status;                  /* of waitpid(2), or a negated errno value: it could not be started */
    bool told;                   /* to end */
    int in, out;                 /* the worker's ends of its pipes; -1: closed */
    struct mk_watcher *in_ready, *out_ready;
    size_t rest; /* bytes of output that it left behind when it ended */
    struct cgi_stderr errors;
    char *name; /* for messages */
};

struct cgi_start {
    const struct cgi_script *script;
    const struct cgi_settings *settings;
    const struct cgi_environ *environ;
    int content_fd; /* its standard input; stays the caller's */
    bool piped;     /* its standard input is a pipe in place of that, for cgi_process_write() */
};

/* Starts a script in the place of the ticket, which is valid. NULL: *error. */
struct cgi_process *cgi_process_start(struct cgi_pool *pool, struct cgi_queue_entry *queue_entry,
                                      const struct cgi_start *start, int *error);

/* Its output: bytes, 0 at the end, -EAGAIN or another error. Once the process has ended, this does not wait
 * for output of others that hold the pipe. */
ssize_t cgi_process_read(struct cgi_process *p, char *room, size_t cap);
/* Is there any, unread? */
bool cgi_process_has_output(const struct cgi_process *p);
/* Its input: how many bytes it took, -EAGAIN; -EPIPE when it wants no more. */
ssize_t cgi_process_write(struct cgi_process *p, mk_str text);
void cgi_process_close_stdin(struct cgi_process *p);

/* Sends SIGTERM, and SIGKILL a moment later. */
void cgi_process_stop(struct cgi_process *p);
/* The request is over. A script that has answered may go on for a while, others are stopped. `p` may not be
 * used after this. */
void cgi_process_detach(struct cgi_process *p, bool has_answered);
/* At once, when the worker stops. */
void cgi_process_kill(struct cgi_process *p);

/* How it ended, in words. */
void cgi_process_describe_exit(const struct cgi_process *p, struct mk_buf *out);

#endif
