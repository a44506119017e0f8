/* SPDX-License-Identifier: Apache-2.0 */
/* A running script: its pipes, its exit, and the time that it may run after its request. Transfers bytes
 * without interpreting them. */
#ifndef CGI_PROCESS_H
#define CGI_PROCESS_H

#include "environ.h"
#include "pool.h"
#include "stderr.h"

struct cgi_process {
    struct cgi_process *next, **at; /* links in the pool's list, until the process has exited */
    struct cgi_pool *pool;
    struct cgi_client *client; /* the pool's entry for the client */
    const struct cgi_settings *settings;
    struct mk_request *request;       /* resumed on events; NULL: the request has ended */
    struct mk_request *past;          /* log context after the request; NULL: out of memory */
    struct mk_subprocess *subprocess; /* NULL: it has exited, with `status` */
    struct mk_timer timer;            /* timeout after which the process is killed */
    int status;                       /* waitpid(2) status; a negated errno value if the start failed */
    bool sigterm_sent;
    int in, out; /* the worker's pipe ends; -1: closed */
    struct mk_watcher *in_ready, *out_ready;
    size_t rest; /* output bytes left in the pipe at exit */
    struct cgi_stderr errors;
    char *name; /* for log messages */
};

struct cgi_start {
    const struct cgi_script *script;
    const struct cgi_settings *settings;
    const struct cgi_environ *environ;
    int content_fd; /* the script's standard input; owned by the caller */
    bool piped;     /* the standard input is a pipe instead, for cgi_process_write() */
};

/* Starts a script in the entry's granted slot. Returns NULL with an error text in *error on failure. */
struct cgi_process *cgi_process_start(struct cgi_pool *pool, struct cgi_queue_entry *queue_entry,
                                      const struct cgi_start *start, int *error);

/* Reads output. Returns the number of bytes, 0 at the end, or -EAGAIN or another error. After the process has
 * exited, does not wait for other processes that hold the pipe open. */
ssize_t cgi_process_read(struct cgi_process *p, char *buf, size_t cap);
/* Returns whether there is unread output. */
bool cgi_process_has_output(const struct cgi_process *p);
/* Writes input. Returns the number of bytes accepted, -EAGAIN, or -EPIPE if the script accepts no more. */
ssize_t cgi_process_write(struct cgi_process *p, mk_str text);
void cgi_process_close_stdin(struct cgi_process *p);

/* Sends SIGTERM, and SIGKILL a moment later. */
void cgi_process_stop(struct cgi_process *p);
/* Call this when the request has ended. A script that has responded may continue for a while; any other
 * script is stopped. Do not use `p` afterwards. */
void cgi_process_detach(struct cgi_process *p, bool has_answered);
/* Kills the process immediately, because the worker stops. */
void cgi_process_kill(struct cgi_process *p);

/* Describes how the process exited. */
void cgi_process_describe_exit(const struct cgi_process *p, struct mk_buf *out);

#endif
