/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE = 4096, TURN = 64 * 1024, PAUSE_MS = 50 };

static void flush(struct cgi_errors *e)
{
    size_t len = e->len;
    if (len && e->line[len - 1] == '\r')
        len--;
    if (len)
        e->say(e->ctx, mk_str_of(e->line, len));
    e->len = 0;
}

/* A NUL would end the message; the log replaces other control characters. */
static void add(struct cgi_errors *e, char c)
{
    if (c == '\n') {
        flush(e);
        return;
    }
    if (e->len == sizeof e->line)
        flush(e);
    e->line[e->len++] = c ? c : '?';
}

static void receive(struct cgi_errors *e, const char *p, size_t n)
{
    size_t kept = n < e->left ? n : (size_t)e->left;
    for (size_t i = 0; i < kept; i++)
        add(e, p[i]);
    bool full = e->left > 0 && kept == e->left;
    e->left -= kept;
    if (!full)
        return;
    flush(e);
    e->say(e->ctx, MK_STR("(MaxErrors is reached: the rest is not logged)"));
}

static void shut(struct cgi_errors *e)
{
    mk_watcher_free(e->watcher);
    mk_alarm_free(e->alarm);
    e->watcher = NULL;
    e->alarm = NULL;
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

void cgi_errors_read(struct cgi_errors *e)
{
    char piece[PIECE];
    for (size_t total = 0; e->fd >= 0 && total < TURN; total += PIECE) {
        ssize_t n = read(e->fd, piece, sizeof piece);
        if (n > 0)
            receive(e, piece, (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n == 0 || errno != EINTR)
            cgi_errors_fini(e);
    }
    if (e->fd >= 0)
        mk_alarm_set(e->alarm, PAUSE_MS); /* a flood must not keep other requests waiting */
}

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    cgi_errors_read(ctx);
}

static void on_due(void *ctx)
{
    cgi_errors_read(ctx);
}

bool cgi_errors_init(struct cgi_errors *e, struct mk_worker *worker, int fd, uint64_t max,
                     void (*say)(void *ctx, mk_str line), void *ctx)
{
    e->fd = fd;
    e->say = say;
    e->ctx = ctx;
    e->left = max;
    e->len = 0;
    e->alarm = mk_alarm_new(worker, on_due, e);
    e->watcher = mk_watcher_new(worker, fd, MK_READABLE, on_ready, e);
    if (e->alarm && e->watcher)
        return true;
    shut(e);
    return false;
}

void cgi_errors_fini(struct cgi_errors *e)
{
    if (e->fd < 0)
        return;
    flush(e);
    shut(e);
}
