/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers call: each function waits for a program. */
#include <duda/child.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "process.h"

enum { PIECE = 4096 };

static int wait_for_it(struct duda_child *c)
{
    int e = c->failure;
    return e ? e : duda_suspend(c->d);
}

/* As in a shell. */
static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int finish(const struct duda_child *c, int *status)
{
    if (c->failure || c->status < 0)
        return c->failure ? c->failure : c->status;
    *status = code_of(c->status);
    return 0;
}

/* ---- Piece by piece ---- */

static void drop(void *ctx)
{
    duda_process_end(ctx);
    mk_mem_free(ctx);
}

int duda_child_start(struct duda *d, const struct duda_child_options *o, struct duda_child **out)
{
    *out = NULL;
    if (duda_ended(d))
        return duda_suspend(d);
    struct duda_child *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    int e = duda_process_begin(c, d, o);
    if (e) {
        mk_mem_free(c);
        return e;
    }
    e = duda_defer(d, drop, c);
    *out = e ? NULL : c;
    return e;
}

ssize_t duda_child_read(struct duda *d, struct duda_child *c, char *room, size_t cap)
{
    int e = 0;
    while (!e && !duda_ended(d)) {
        ssize_t n = c->failure ? c->failure : duda_process_read(c, room, cap);
        if (n != -EAGAIN)
            return n;
        e = wait_for_it(c);
    }
    return e ? e : duda_suspend(d);
}

int duda_child_write(struct duda *d, struct duda_child *c, mk_str text)
{
    int e = duda_ended(d) ? duda_suspend(d) : 0;
    while (!e && text.len) {
        ssize_t n = c->failure ? c->failure : duda_process_write(c, text);
        if (n > 0)
            text = mk_str_skip(text, (size_t)n);
        else
            e = n == -EAGAIN ? wait_for_it(c) : (int)n;
    }
    return e;
}

void duda_child_end_input(struct duda_child *c)
{
    duda_process_end_input(c);
}

void duda_child_signal(struct duda_child *c, int signal)
{
    if (c->process)
        mk_child_signal(c->process, signal);
}

int duda_child_wait(struct duda *d, struct duda_child *c, int *status)
{
    char room[PIECE];
    ssize_t n;
    duda_process_end_input(c);
    while ((n = duda_child_read(d, c, room, sizeof room)) > 0)
        continue;
    int e = n < 0 ? (int)n : 0;
    while (!e && !c->ended)
        e = wait_for_it(c);
    return e ? e : finish(c, status);
}

/* ---- All at once ---- */

/* As much as it takes now. It need not read all of it. */
static void feed(struct duda_child *c, mk_str *input)
{
    ssize_t n = 1;
    while (input->len && (n = duda_process_write(c, *input)) > 0)
        *input = mk_str_skip(*input, (size_t)n);
    if (!input->len || n == -EPIPE)
        duda_process_end_input(c);
}

/* As much as there is now. 0: it is over; -EAGAIN, -EFBIG. */
static ssize_t drain(struct duda_child *c, struct mk_buf *out, size_t max)
{
    char room[PIECE];
    ssize_t n;
    while ((n = duda_process_read(c, room, sizeof room)) > 0) {
        if ((size_t)n > max - out->len)
            return -EFBIG;
        mk_buf_add(out, mk_str_of(room, (size_t)n));
        if (out->failed)
            return -ENOMEM;
    }
    return n;
}

static int converse(struct duda_child *c, mk_str input, size_t max, struct mk_buf *out)
{
    for (;;) {
        int e = c->failure ? c->failure : duda_ended(c->d);
        if (e)
            return e;
        feed(c, &input);
        ssize_t n = drain(c, out, max);
        if (n < 0 && n != -EAGAIN)
            return (int)n;
        if (n == 0 && c->ended)
            return 0;
        e = wait_for_it(c);
        if (e)
            return e;
    }
}

int duda_child_run(struct duda *d, const struct duda_child_options *o, mk_str input, size_t max,
                   mk_str *output, int *status)
{
    struct duda_child c;
    struct mk_buf out = mk_buf_growing(max < SIZE_MAX ? max + 1 : max);
    *output = MK_ABSENT;
    *status = 0;
    if (duda_ended(d))
        return duda_suspend(d);
    int e = duda_process_begin(&c, d, o);
    if (e)
        return e;
    e = converse(&c, input, max, &out);
    e = e ? e : finish(&c, status);
    duda_process_end(&c);
    if (!e)
        *output = duda_copy(d, mk_buf_str(&out));
    mk_buf_free(&out);
    return e ? e : output->p ? 0 : -ENOMEM;
}
