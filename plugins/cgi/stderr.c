/* SPDX-License-Identifier: Apache-2.0 */
#include "stderr.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE = 4096, READ_MAX = 64 * 1024, PAUSE_MS = 50 };

static void close_stderr(struct cgi_stderr *e)
{
    mk_watcher_free(e->watcher);
    mk_timer_stop(&e->timer);
    e->watcher = NULL;
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

void cgi_stderr_read(struct cgi_stderr *e)
{
    char piece[PIECE];
    for (size_t total = 0; e->fd >= 0 && total < READ_MAX; total += PIECE) {
        ssize_t n = read(e->fd, piece, sizeof piece);
        if (n > 0)
            mk_cgi_stderr_add(&e->lines, mk_str_of(piece, (size_t)n));
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n == 0 || errno != EINTR)
            cgi_stderr_fini(e);
    }
    if (e->fd >= 0)
        mk_timer_set(&e->timer, e->worker, PAUSE_MS); /* a flood must not delay other requests */
}

static void on_stderr_readable(void *ctx, unsigned which)
{
    (void)which;
    cgi_stderr_read(ctx);
}

static void on_read_timer(struct mk_timer *t)
{
    cgi_stderr_read(MK_CONTAINER(t, struct cgi_stderr, timer));
}

bool cgi_stderr_init(struct cgi_stderr *e, struct mk_worker *worker, int fd, uint64_t max,
                     void (*say)(void *ctx, mk_str line), void *ctx)
{
    e->fd = fd;
    e->worker = worker;
    e->lines = (struct mk_cgi_stderr){.on_line = say,
                                      .ctx = ctx,
                                      .remaining = max,
                                      .limit_message = "(MaxStderr is reached: the rest is not logged)"};
    mk_timer_init(&e->timer, on_read_timer);
    e->watcher = mk_watcher_new(worker, fd, MK_READABLE, on_stderr_readable, e);
    if (e->watcher)
        return true;
    close_stderr(e);
    return false;
}

void cgi_stderr_fini(struct cgi_stderr *e)
{
    if (e->fd < 0)
        return;
    mk_cgi_stderr_flush(&e->lines);
    close_stderr(e);
}
