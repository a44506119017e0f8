/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <duda/asked.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sections.h"

enum { ERRORS_MAX = 16 << 10, PIPE = 64 << 10, PIECE = 4096 };

static void shut(int *fd, struct mk_watcher **watcher)
{
    mk_watcher_free(*watcher);
    *watcher = NULL;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- What is counted ---- */

static void count_begin(struct duda_child *c)
{
    c->meter = mk_worker_data(duda_worker(c->d), &MK_PLUGIN_OF(duda_child));
    c->begun_us = pack_meter_begin(c->meter);
}

/* Its exit code is an answer; that it could not be started, or was killed here, is a failure. */
static void count_end(struct duda_child *c, int e)
{
    if (!c->is_counted)
        mk_meter_end(c->meter, mk_clock_us() - c->begun_us, e < 0);
    c->is_counted = true;
}

/* ---- What happens to it ---- */

static void on_ready(void *ctx, unsigned which)
{
    struct duda_child *c = ctx;
    (void)which;
    duda_wait_wake(&c->wait);
}

static void say(void *ctx, mk_str line)
{
    const struct duda_child *c = ctx;
    duda_log(c->d, MK_LOG_WARN, "duda-child: %.*s", MK_STR_ARG(line));
}

/* One piece a call: the watcher calls again for more. False: there is no more now. */
static bool read_errors(struct duda_child *c)
{
    char room[PIECE];
    ssize_t n = c->err >= 0 ? read(c->err, room, sizeof room) : -1;
    if (n > 0)
        mk_cgi_errors_add(&c->errors, mk_str_of(room, (size_t)n));
    if (n == 0)
        shut(&c->err, &c->err_ready);
    return n > 0;
}

static void on_errors(void *ctx, unsigned which)
{
    (void)which;
    (void)read_errors(ctx);
}

static void on_end(void *ctx, int status)
{
    struct duda_child *c = ctx;
    c->process = NULL;
    c->ended = true;
    c->status = status;
    count_end(c, status);
    for (size_t i = 0; i < PIPE / PIECE && read_errors(c); i++)
        continue;
    mk_cgi_errors_end(&c->errors);
    duda_wait_wake(&c->wait);
}

static void on_late(struct mk_timer *t)
{
    struct duda_child *c = MK_CONTAINER(t, struct duda_child, timer);
    c->failure = -ETIMEDOUT;
    duda_process_end(c);
    duda_wait_wake(&c->wait);
}

/* ---- Its beginning ---- */

/* The other ends of its pipes. */
struct ends {
    int in, out, err;
};

/* Ours never blocks; the program's does, as programs expect. */
static int open_pipe(int *ours, int *theirs, int which_is_ours)
{
    int both[2];
    if (pipe2(both, O_CLOEXEC))
        return -errno;
    *ours = both[which_is_ours];
    *theirs = both[1 - which_is_ours];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int open_pipes(struct duda_child *c, struct ends *theirs, bool joins)
{
    int e = open_pipe(&c->in, &theirs->in, 1);
    if (!e)
        e = open_pipe(&c->out, &theirs->out, 0);
    if (!e && !joins)
        e = open_pipe(&c->err, &theirs->err, 0);
    return e;
}

static int watch(struct duda_child *c, const struct duda_child_options *o)
{
    struct mk_worker *w = duda_worker(c->d);
    c->in_ready = mk_watcher_new(w, c->in, MK_WRITABLE, on_ready, c);
    c->out_ready = mk_watcher_new(w, c->out, MK_READABLE, on_ready, c);
    if (c->err >= 0)
        c->err_ready = mk_watcher_new(w, c->err, MK_READABLE | MK_LEVEL, on_errors, c);
    if (!c->in_ready || !c->out_ready || (c->err >= 0 && !c->err_ready))
        return -ENOMEM;
    mk_timer_init(&c->timer, on_late);
    if (o->ms)
        mk_timer_set(&c->timer, w, o->ms);
    return 0;
}

static int start(struct duda_child *c, const struct duda_child_options *o, const struct ends *theirs)
{
    static const char *const usual[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    const struct mk_child_options options = {.argv = o->argv,
                                             .envp = o->envp ? o->envp : usual,
                                             .cwd = o->cwd,
                                             .in = theirs->in,
                                             .out = theirs->out,
                                             .err = o->joins_errors ? theirs->out : theirs->err,
                                             .cpu_s = o->cpu_s,
                                             .memory = o->memory};
    c->process = mk_child_start(duda_worker(c->d), &options, on_end, c);
    return c->process ? 0 : -EAGAIN;
}

static void close_ends(const struct ends *theirs)
{
    const int all[] = {theirs->in, theirs->out, theirs->err};
    for (size_t i = 0; i < MK_LEN(all); i++)
        if (all[i] >= 0)
            close(all[i]);
}

static size_t bytes_of(const char *const *list)
{
    size_t n = 0;
    for (; list && *list; list++)
        n += strlen(*list) + 1;
    return n;
}

/* What the server would refuse with a line in the log, without saying why here. */
static int check(const struct duda_child_options *o)
{
    enum { TEXT_MAX = 120 << 10 };
    if (!o->argv || !o->argv[0] || !strchr(o->argv[0], '/'))
        return -EINVAL;
    return bytes_of(o->argv) + bytes_of(o->envp) > TEXT_MAX ? -E2BIG : 0;
}

int duda_process_begin(struct duda_child *c, struct duda *d, const struct duda_child_options *o)
{
    struct ends theirs = {-1, -1, -1};
    *c = (struct duda_child){.d = d, .in = -1, .out = -1, .err = -1};
    c->errors = (struct mk_cgi_errors){
        .say = say, .ctx = c, .left = ERRORS_MAX, .full = "(the rest of what it says is not logged)"};
    count_begin(c);
    int e = check(o);
    if (!e)
        e = open_pipes(c, &theirs, o->joins_errors);
    if (!e)
        e = watch(c, o);
    if (!e)
        e = start(c, o, &theirs);
    close_ends(&theirs);
    if (e)
        duda_process_end(c);
    return e;
}

/* ---- Its end ---- */

void duda_process_end(struct duda_child *c)
{
    mk_child_drop(c->process);
    c->process = NULL;
    if (!c->failure)
        c->failure = -ECANCELED;
    count_end(c, c->failure);
    shut(&c->in, &c->in_ready);
    shut(&c->out, &c->out_ready);
    shut(&c->err, &c->err_ready);
    mk_timer_stop(&c->timer);
}

/* ---- Its streams ---- */

/* When it has ended, those that it has left behind may hold its output open: what there is now is all. */
ssize_t duda_process_read(struct duda_child *c, char *room, size_t cap)
{
    bool ended = c->ended;
    ssize_t n = -1;
    if (c->out < 0)
        return 0;
    do
        n = read(c->out, room, cap);
    while (n < 0 && errno == EINTR);
    if (n < 0 && !(ended && errno == EAGAIN))
        return -errno;
    if (n > 0)
        return n;
    shut(&c->out, &c->out_ready);
    return 0;
}

ssize_t duda_process_write(struct duda_child *c, mk_str text)
{
    ssize_t n = -1;
    if (c->in < 0)
        return -EPIPE;
    do
        n = write(c->in, text.p, text.len);
    while (n < 0 && errno == EINTR);
    if (n >= 0 || errno == EAGAIN)
        return n >= 0 ? n : -EAGAIN;
    shut(&c->in, &c->in_ready);
    return -EPIPE;
}

void duda_process_end_input(struct duda_child *c)
{
    shut(&c->in, &c->in_ready);
}
