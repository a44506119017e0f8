/* SPDX-License-Identifier: Apache-2.0 */
/* A process and its pipes. Their events wake the handler; nothing here waits. */
#ifndef DUDA_SUBPROCESS_PROCESS_H
#define DUDA_SUBPROCESS_PROCESS_H

#include <duda/subprocess.h>
#include <duda/wait.h>
#include <monkey/cgi.h>
#include <monkey/meter.h>
#include <monkey/plugin.h>
#include <monkey/subprocess.h>

MK_PLUGIN_DECLARE(duda_subprocess);

struct duda_subprocess {
    struct duda_wait wait; /* wait of the active call; must be first */
    struct duda_ctx *d;
    struct mk_subprocess *process; /* NULL: exited or killed */
    struct mk_timer timer;
    int in, out, err; /* our ends of the pipes to the child; -1: closed */
    struct mk_watcher *in_ready, *out_ready, *err_ready;
    struct mk_cgi_stderr errors;
    uint64_t *meter;
    uint64_t began_us;
    bool is_counted;
    bool ended;
    int status;  /* after the exit: as in waitpid(2); negative: the error that prevented the start */
    int failure; /* 0, or the error that all calls return from now on */
};

/* Starts the process. Returns 0; on failure, releases all resources and returns a negative errno value. */
int duda_process_start(struct duda_subprocess *c, struct duda_ctx *d,
                       const struct duda_subprocess_options *o);
/* Kills the process if it is still running, and closes its pipes. Safe to call twice. */
void duda_process_close(struct duda_subprocess *c);

/* Returns the number of bytes read; 0 at the end of the output; -EAGAIN if no data has arrived yet; or
 * another negative errno value. */
ssize_t duda_process_read(struct duda_subprocess *c, char *buf, size_t cap);
/* Returns the number of bytes written; -EAGAIN if the pipe is full; or -EPIPE if the pipe is closed. */
ssize_t duda_process_write(struct duda_subprocess *c, mk_str text);
void duda_process_close_stdin(struct duda_subprocess *c);

#endif
