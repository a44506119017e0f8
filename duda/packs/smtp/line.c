/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/mem.h>

enum { READ_ROOM = 4096, REPLY_MAX = SMTP_LINE_MAX * SMTP_LINES_MAX, TEXT_MAX = 1000, HEAD_ROOM = 64 * 1024 };

static void on_ready(void *ctx, unsigned which)
{
    (void)which;
    duda_wake(((struct smtp_line *)ctx)->d);
}

static void on_due(void *ctx)
{
    struct smtp_line *line = ctx;
    line->is_late = true;
    duda_wake(line->d);
}

void smtp_line_close(struct smtp_line *line)
{
    mk_upstream_conn_release(line->link, MK_UPSTREAM_CONN_CLOSE);
    mk_alarm_free(line->alarm);
    mk_buf_free(&line->in);
    mk_buf_free(&line->out);
    mk_buf_free(&line->message);
    line->link = NULL;
    line->alarm = NULL;
}

static void free_line(void *ctx)
{
    smtp_line_close(ctx);
    mk_mem_free(ctx);
}

struct smtp_line *smtp_line_new(struct duda *d, const struct duda_smtp *smtp)
{
    struct smtp_line *line = mk_mem_zalloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->d = d;
    line->smtp = smtp;
    line->timeout_ms = smtp->timeout_ms;
    line->message = mk_buf_growing((size_t)smtp->message_max + HEAD_ROOM);
    line->in = mk_buf_growing(REPLY_MAX + READ_ROOM);
    line->out =
        mk_buf_growing(2 * ((size_t)smtp->message_max + HEAD_ROOM)); /* lines may all begin with dots */
    line->alarm = mk_alarm_new(duda_worker(d), on_due, line);
    return duda_defer(d, free_line, line) || !line->alarm ? NULL : line;
}

/* Waits for the connection, until the clock of the operation is over. */
static int await(struct smtp_line *line)
{
    int e = duda_suspend(line->d);
    return e ? e : line->is_late ? -ETIMEDOUT : 0;
}

static void start_clock(struct smtp_line *line)
{
    line->is_late = false;
    mk_alarm_set(line->alarm, line->timeout_ms);
}

int smtp_line_connect(struct smtp_line *line)
{
    const struct mk_upstream_conn_options options = {.server = -1, .fresh = true};
    int e = 0, state;
    start_clock(line);
    line->link =
        mk_upstream_conn_acquire(duda_worker(line->d), line->smtp->upstream, &options, on_ready, line);
    if (!line->link)
        return -ENOMEM;
    while ((state = mk_upstream_conn_state(line->link)) == -EAGAIN && !(e = await(line)))
        ;
    return e ? e : state;
}

int smtp_line_write(struct smtp_line *line, mk_str bytes)
{
    int e = 0;
    start_clock(line);
    while (bytes.len && !e) {
        ssize_t n = mk_upstream_conn_write(line->link, bytes, false);
        if (n == -EAGAIN)
            e = await(line);
        else if (n < 0)
            return (int)n;
        else {
            bytes = mk_str_skip(bytes, (size_t)n);
            start_clock(line);
        }
    }
    return e;
}

static int keep_text(struct smtp_line *line, const struct smtp_reply *reply)
{
    char room[TEXT_MAX * 4 + 8];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    struct smtp_reply shown = *reply;
    shown.lines = mk_str_first(reply->lines, reply->lines.len < TEXT_MAX ? reply->lines.len : TEXT_MAX);
    smtp_reply_show(&text, &shown);
    line->code = reply->code;
    line->text = duda_copy(line->d, mk_buf_str(&text));
    return line->text.p ? 0 : -ENOMEM;
}

int smtp_line_read(struct smtp_line *line)
{
    struct smtp_reply reply;
    ssize_t n;
    start_clock(line);
    while ((n = smtp_reply_read(mk_buf_str(&line->in), &reply)) == 0) {
        if (!mk_buf_reserve(&line->in, READ_ROOM))
            return -ENOMEM;
        ssize_t got = mk_upstream_conn_read(line->link, line->in.p + line->in.len, READ_ROOM);
        int e = got == -EAGAIN ? await(line) : got == 0 ? -ECONNRESET : got < 0 ? (int)got : 0;
        if (e)
            return e;
        line->in.len += got > 0 ? (size_t)got : 0;
    }
    if (n < 0)
        return (int)n;
    line->reply_as = smtp_extensions_read(&reply);
    int e = keep_text(line, &reply);
    mk_buf_drop(&line->in, (size_t)n);
    return e;
}
