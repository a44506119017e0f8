/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that handlers call; they wait for the process. */
#include <duda/memory.h>
#include <duda/subprocess.h>
#include <errno.h>
#include <monkey/sized.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/package.h"
#include "process.h"

enum { PIECE = 4096, DISCARDED = 1024 };

static int wait_for_process_event(struct duda_subprocess *c)
{
    int e = c->failure;
    return e ? e : duda_wait_suspend(&c->wait);
}

/* Returns the exit code that a shell would report. */
static int shell_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int get_exit_status(const struct duda_subprocess *c, int *status)
{
    if (c->failure || c->status < 0)
        return c->failure ? c->failure : c->status;
    *status = shell_exit_code(c->status);
    return 0;
}

/* ---- Streaming ---- */

static void free_subprocess(void *ctx)
{
    duda_process_close(ctx);
    mk_mem_free(ctx);
}

static int start_subprocess(struct duda_ctx *d, const struct duda_subprocess_options *o,
                            struct duda_subprocess **out)
{
    struct duda_subprocess *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    int e = duda_process_start(c, d, o);
    if (e) {
        mk_mem_free(c);
        return e;
    }
    e = duda_defer(d, free_subprocess, c);
    *out = e ? NULL : c;
    return e;
}

int duda_subprocess_start_sized(struct duda_ctx *d, const struct duda_subprocess_options *o, size_t o_size,
                                struct duda_subprocess **out)
{
    struct duda_subprocess_options full;
    o = mk_sized_in(&full, sizeof full, o, o_size);
    struct package_call call;
    *out = NULL;
    int e = package_call_begin(&call, d, NULL); /* the metrics count the process, from start to exit */
    return package_call_end(&call, e ? e : start_subprocess(d, o, out));
}

ssize_t duda_subprocess_read(struct duda_ctx *d, struct duda_subprocess *c, char *buf, size_t cap)
{
    int e = duda_wait_begin(d, &c->wait, NULL);
    ssize_t n = 0;
    while (!e && (n = c->failure ? c->failure : duda_process_read(c, buf, cap)) == -EAGAIN)
        e = wait_for_process_event(c);
    duda_wait_end(&c->wait);
    return e ? e : n;
}

int duda_subprocess_write(struct duda_ctx *d, struct duda_subprocess *c, mk_str text)
{
    int e = duda_wait_begin(d, &c->wait, NULL);
    while (!e && text.len) {
        ssize_t n = c->failure ? c->failure : duda_process_write(c, text);
        if (n > 0)
            text = mk_str_skip(text, (size_t)n);
        else
            e = n == -EAGAIN ? wait_for_process_event(c) : (int)n;
    }
    duda_wait_end(&c->wait);
    return e;
}

void duda_subprocess_close_stdin(struct duda_subprocess *c)
{
    duda_process_close_stdin(c);
}

void duda_subprocess_signal(struct duda_subprocess *c, int signal)
{
    if (c->process)
        mk_subprocess_signal(c->process, signal);
}

int duda_subprocess_wait(struct duda_ctx *d, struct duda_subprocess *c, int *status)
{
    char buf[DISCARDED];
    ssize_t n;
    duda_process_close_stdin(c);
    while ((n = duda_subprocess_read(d, c, buf, sizeof buf)) > 0)
        continue;
    int e = n < 0 ? (int)n : duda_wait_begin(d, &c->wait, NULL);
    while (!e && !c->ended)
        e = wait_for_process_event(c);
    duda_wait_end(&c->wait);
    return e ? e : get_exit_status(c, status);
}

/* ---- Run to completion ---- */

/* Writes as much as the pipe accepts. The process need not read all input. */
static void write_stdin(struct duda_subprocess *c, mk_str *input)
{
    ssize_t n = 1;
    while (input->len && (n = duda_process_write(c, *input)) > 0)
        *input = mk_str_skip(*input, (size_t)n);
    if (!input->len || n == -EPIPE)
        duda_process_close_stdin(c);
}

/* Reads all available output. Returns 0 at its end; -EAGAIN: more may come; -EMSGSIZE: the output exceeds
 * `max`; -ENOMEM. */
static ssize_t read_stdout(struct duda_subprocess *c, struct mk_buf *out, size_t max)
{
    ssize_t n;
    do {
        /* One extra byte reveals output beyond `max`. */
        size_t size = max - out->len < PIECE ? max - out->len + 1 : PIECE;
        if (!mk_buf_reserve(out, size))
            return -ENOMEM;
        n = duda_process_read(c, out->p + out->len, size);
        out->len += n > 0 ? (size_t)n : 0;
        if (out->len > max)
            return -EMSGSIZE;
    } while (n > 0);
    return n;
}

/* Writes the input and reads the output until the process exits. */
static int pump_until_exit(struct duda_subprocess *c, mk_str input, size_t max, struct mk_buf *out)
{
    int e = c->failure ? c->failure : duda_wait_begin(c->d, &c->wait, NULL);
    while (!e) {
        write_stdin(c, &input);
        ssize_t n = read_stdout(c, out, max);
        if (n == 0 && c->ended)
            break;
        e = n < 0 && n != -EAGAIN ? (int)n : wait_for_process_event(c);
    }
    duda_wait_end(&c->wait);
    return e;
}

/* A process that runs to completion, and its output. */
struct running {
    struct duda_wait wait; /* must be first */
    struct duda_subprocess child;
    struct mk_buf out;
};

static void free_process_run(struct duda_wait *w)
{
    struct running *r = (struct running *)w;
    duda_process_close(&r->child);
    mk_buf_free(&r->out);
}

int duda_subprocess_run_sized(struct duda_ctx *d, const struct duda_subprocess_options *o, size_t o_size,
                              mk_str input, size_t max, mk_str *output, int *status)
{
    struct duda_subprocess_options full;
    o = mk_sized_in(&full, sizeof full, o, o_size);
    struct running r = {.out = mk_buf_growing(max < SIZE_MAX ? max + 1 : max)};
    *output = MK_STR_NULL;
    *status = 0;
    int e = duda_wait_begin(d, &r.wait, free_process_run);
    if (e)
        return e;
    e = duda_process_start(&r.child, d, o);
    e = e ? e : pump_until_exit(&r.child, input, max, &r.out);
    e = e ? e : get_exit_status(&r.child, status);
    if (!e)
        *output = duda_strdup(d, mk_buf_str(&r.out));
    duda_wait_end(&r.wait);
    return e ? e : output->p ? 0 : -ENOMEM;
}
