/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <duda/asked.h>
#include <duda/memory.h>
#include <errno.h>
#include <monkey/mem.h>

enum { READ_ROOM = 4096, REPLY_MAX = SMTP_LINE_MAX * SMTP_LINES_MAX, TEXT_MAX = 1000, HEAD_ROOM = 64 * 1024 };

/* ---- What the connection says ---- */

static void on_ready(struct pack_stream *stream)
{
    duda_wait_wake(&((struct smtp_line *)stream)->wait);
}

static void name_server(struct pack_stream *stream)
{
    mk_str name = stream->conn ? mk_upstream_conn_server_name(stream->conn) : MK_ABSENT;
    if (name.p)
        stream->link.server = name;
}

/* An outage is one of the server: another line has reported it, maybe. */
static void on_connected(struct pack_stream *stream)
{
    struct smtp_line *line = (struct smtp_line *)stream;
    name_server(stream);
    stream->link.failing_ms = line->smtp->failing_ms;
    line->smtp->failing_ms = 0;
    pack_link_up(&stream->link);
}

static void close_link(struct pack_link *l)
{
    struct smtp_line *line = (struct smtp_line *)l;
    name_server(&line->stream);
    l->failing_ms = line->smtp->failing_ms;
    pack_stream_close(l);
}

static void on_down(struct pack_link *l, int error)
{
    struct smtp_line *line = (struct smtp_line *)l;
    line->smtp->failing_ms = l->failing_ms;
    line->error = error;
    duda_wait_wake(&line->wait);
}

/* on_down() tells the handler. */
static void finish(struct pack_link *l, struct pack_request *r, int error, bool is_sent)
{
    (void)l, (void)r, (void)error, (void)is_sent;
}

static const struct pack_stream_ops stream_ops = {.on_connected = on_connected, .on_ready = on_ready};

static const struct pack_link_ops link_ops = {.section = "SMTP",
                                              .connect = pack_stream_connect,
                                              .close = close_link,
                                              .on_down = on_down,
                                              .finish = finish};

/* ---- Its life ---- */

void smtp_line_close(struct smtp_line *line)
{
    pack_link_fini(&line->stream.link);
    mk_buf_free(&line->in);
    mk_buf_free(&line->out);
    mk_buf_free(&line->message);
}

static void free_line(void *ctx)
{
    smtp_line_close(ctx);
    mk_mem_free(ctx);
}

struct smtp_line *smtp_line_new(struct duda *d, struct duda_smtp *smtp)
{
    struct smtp_line *line = mk_mem_zalloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->d = d;
    line->smtp = smtp;
    line->message = mk_buf_growing((size_t)smtp->message_max + HEAD_ROOM);
    line->in = mk_buf_growing(REPLY_MAX + READ_ROOM);
    line->out =
        mk_buf_growing(2 * ((size_t)smtp->message_max + HEAD_ROOM)); /* lines may all begin with dots */
    pack_stream_init(&line->stream, &stream_ops, smtp->upstream);
    line->stream.link.server = smtp->server;
    int e = pack_link_init(&line->stream.link, duda_worker(d), &link_ops, smtp->name, smtp->timeout_ms);
    return duda_defer(d, free_line, line) || e ? NULL : line;
}

/* ---- Steps ---- */

/* Waits for the connection, until the clock of the step is over. */
static int await(struct smtp_line *line)
{
    int e = duda_wait_suspend(&line->wait);
    return e ? e : line->error;
}

static void start_clock(struct smtp_line *line)
{
    struct pack_link *l = &line->stream.link;
    line->step.due_ms = mk_worker_now_ms(l->worker) + l->timeout_ms;
    if (!l->sent.first)
        pack_link_add_sent(l, &line->step);
}

static int stop_clock(struct smtp_line *line, int e)
{
    (void)pack_requests_pop(&line->stream.link.sent);
    return e;
}

int smtp_line_connect(struct smtp_line *line)
{
    int e = 0;
    pack_link_open(&line->stream.link);
    while (pack_link_is_opening(&line->stream.link) && !e)
        e = duda_wait_suspend(&line->wait);
    return e ? e : line->error;
}

int smtp_line_write(struct smtp_line *line, mk_str bytes)
{
    int e = 0;
    start_clock(line);
    while (bytes.len && !e) {
        ssize_t n = pack_stream_write(&line->stream, bytes);
        if (n == -EAGAIN)
            e = await(line);
        else if (n < 0)
            e = (int)n;
        else {
            bytes = mk_str_skip(bytes, (size_t)n);
            start_clock(line);
        }
    }
    return stop_clock(line, e);
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

/* 0: there are more bytes. */
static int read_more(struct smtp_line *line)
{
    if (!mk_buf_reserve(&line->in, READ_ROOM))
        return -ENOMEM;
    ssize_t n = pack_stream_read(&line->stream, line->in.p + line->in.len, READ_ROOM);
    line->in.len += n > 0 ? (size_t)n : 0;
    return n == -EAGAIN ? await(line) : n < 0 ? (int)n : 0;
}

int smtp_line_read(struct smtp_line *line)
{
    struct smtp_reply reply;
    ssize_t n;
    int e = 0;
    start_clock(line);
    while (!e && (n = smtp_reply_read(mk_buf_str(&line->in), &reply)) == 0)
        e = read_more(line);
    stop_clock(line, 0);
    if (e || n < 0)
        return e ? e : (int)n;
    line->reply_as = smtp_extensions_read(&reply);
    e = keep_text(line, &reply);
    mk_buf_drop(&line->in, (size_t)n);
    return e;
}
