/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers call: each function waits for a program. */
#include <duda/child.h>
#include <duda/memory.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "process.h"
#include "sections.h"

enum { PIECE = 4096 };

static int wait_for_it(struct duda_child *c)
{
    int e = c->failure;
    return e ? e : duda_wait_suspend(&c->wait);
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

static int start(struct duda *d, const struct duda_child_options *o, struct duda_child **out)
{
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

int duda_child_start(struct duda *d, const struct duda_child_options *o, struct duda_child **out)
{
    struct pack_call call;
    *out = NULL;
    int e = pack_call_begin(&call, d, NULL); /* the program is counted, from its begin to its end */
    return pack_call_end(&call, e ? e : start(d, o, out));
}

ssize_t duda_child_read(struct duda *d, struct duda_child *c, char *room, size_t cap)
{
    int e = duda_wait_begin(d, &c->wait, NULL);
    ssize_t n = 0;
    while (!e && (n = c->failure ? c->failure : duda_process_read(c, room, cap)) == -EAGAIN)
        e = wait_for_it(c);
    duda_wait_end(&c->wait);
    return e ? e : n;
}

int duda_child_write(struct duda *d, struct duda_child *c, mk_str text)
{
    int e = duda_wait_begin(d, &c->wait, NULL);
    while (!e && text.len) {
        ssize_t n = c->failure ? c->failure : duda_process_write(c, text);
        if (n > 0)
            text = mk_str_skip(text, (size_t)n);
        else
            e = n == -EAGAIN ? wait_for_it(c) : (int)n;
    }
    duda_wait_end(&c->wait);
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
    int e = n < 0 ? (int)n : duda_wait_begin(d, &c->wait, NULL);
    while (!e && !c->ended)
        e = wait_for_it(c);
    duda_wait_end(&c->wait);
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

/* Until it is over. */
static int converse(struct duda_child *c, mk_str input, size_t max, struct mk_buf *out)
{
    int e = c->failure ? c->failure : duda_wait_begin(c->d, &c->wait, NULL);
    while (!e) {
        feed(c, &input);
        ssize_t n = drain(c, out, max);
        if (n == 0 && c->ended)
            break;
        e = n < 0 && n != -EAGAIN ? (int)n : wait_for_it(c);
    }
    duda_wait_end(&c->wait);
    return e;
}

/* A program that is run at once, and what it says. */
struct running {
    struct duda_wait wait; /* the first */
    struct duda_child child;
    struct mk_buf out;
};

static void end_running(struct duda_wait *w)
{
    struct running *r = (struct running *)w;
    duda_process_end(&r->child);
    mk_buf_free(&r->out);
}

int duda_child_run(struct duda *d, const struct duda_child_options *o, mk_str input, size_t max,
                   mk_str *output, int *status)
{
    struct running r = {.out = mk_buf_growing(max < SIZE_MAX ? max + 1 : max)};
    *output = MK_ABSENT;
    *status = 0;
    int e = duda_wait_begin(d, &r.wait, end_running);
    if (e)
        return e;
    e = duda_process_begin(&r.child, d, o);
    e = e ? e : converse(&r.child, input, max, &r.out);
    e = e ? e : finish(&r.child, status);
    if (!e)
        *output = duda_copy(d, mk_buf_str(&r.out));
    duda_wait_end(&r.wait);
    return e ? e : output->p ? 0 : -ENOMEM;
}
