/* SPDX-License-Identifier: Apache-2.0 */
/* A program and its pipes. What happens to them wakes the handler; nothing here waits. */
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
    struct duda_wait wait; /* of the function that is called; the first */
    struct duda_ctx *d;
    struct mk_subprocess *process; /* NULL: it has ended, or was killed */
    struct mk_timer timer;
    int in, out, err; /* our ends; -1: closed */
    struct mk_watcher *in_ready, *out_ready, *err_ready;
    struct mk_cgi_errors errors;
    uint64_t *meter;
    uint64_t begun_us;
    bool is_counted;
    bool ended;
    int status;  /* if it has ended: as waitpid(2) says, or negative: why it could not be started */
    int failure; /* 0, or what all calls answer from now on */
};

/* 0 or a negated errno value; then nothing is left of it. */
int duda_process_start(struct duda_subprocess *c, struct duda_ctx *d,
                       const struct duda_subprocess_options *o);
/* Kills it, if it runs still, and closes all. Harmless when that was done already. */
void duda_process_close(struct duda_subprocess *c);

/* -EAGAIN: later. 0: it is over. Also -EIO and others. */
ssize_t duda_process_read(struct duda_subprocess *c, char *buf, size_t cap);
/* How much it took; -EAGAIN, -EPIPE. */
ssize_t duda_process_write(struct duda_subprocess *c, mk_str text);
void duda_process_close_stdin(struct duda_subprocess *c);

#endif
