/* SPDX-License-Identifier: Apache-2.0 */
/* A running script: pipes, exit, and background run time after its request. Transfers bytes without
 * interpreting them. */
#ifndef CGI_PROCESS_H
#define CGI_PROCESS_H

#include "environ.h"
#include "pool.h"
#include "stderr.h"

struct cgi_process {
    struct cgi_process *next, **at; /* in its pool, until it has exited */
    struct cgi_pool *pool;
    struct cgi_client *client; /* client in the pool */
    const struct cgi_settings *settings;
    struct mk_request *request;  /* resumed on events; NULL: the request is over */
    struct mk_request *past;     /* log context afterwards; NULL: out of memory */
    struct mk_subprocess *child; /* NULL: exited, with `status` */
    struct mk_timer timer;       /* kill timeout */
    int status;                  /* waitpid(2) status, or a negated errno value: could not be started */
    bool told;                   /* SIGTERM was sent */
    int in, out;                 /* the worker's pipe ends; -1: closed */
    struct mk_watcher *in_ready, *out_ready;
    size_t rest; /* output bytes left in the pipe at exit */
    struct cgi_stderr errors;
    char *name; /* for log messages */
};

struct cgi_start {
    const struct cgi_script *script;
    const struct cgi_settings *settings;
    const struct cgi_environ *environ;
    int content_fd; /* its standard input; owned by the caller */
    bool piped;     /* its standard input is a pipe instead, for cgi_process_write() */
};

/* Starts a script in the entry's granted slot. NULL: *error. */
struct cgi_process *cgi_process_start(struct cgi_pool *pool, struct cgi_queue_entry *queue_entry,
                                      const struct cgi_start *start, int *error);

/* Reads output: bytes, 0 at the end, -EAGAIN or another error. After the process has exited, does not wait
 * for others that hold the pipe open. */
ssize_t cgi_process_read(struct cgi_process *p, char *buf, size_t cap);
/* Is there unread output? */
bool cgi_process_has_output(const struct cgi_process *p);
/* Writes input: bytes accepted, -EAGAIN; -EPIPE: it accepts no more. */
ssize_t cgi_process_write(struct cgi_process *p, mk_str text);
void cgi_process_close_stdin(struct cgi_process *p);

/* Sends SIGTERM, and SIGKILL a moment later. */
void cgi_process_stop(struct cgi_process *p);
/* The request is over. A script that has responded may run on for a while, any other is stopped. `p` must not
 * be used afterwards. */
void cgi_process_detach(struct cgi_process *p, bool has_answered);
/* Kills the process immediately, when the worker stops. */
void cgi_process_kill(struct cgi_process *p);

/* Describes how the process exited. */
void cgi_process_describe_exit(const struct cgi_process *p, struct mk_buf *out);

#endif
