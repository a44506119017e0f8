/* SPDX-License-Identifier: Apache-2.0 */
/* A live log: every line goes to the event streams of all clients. */
#include "device.h"

#include <monkey/sse_stream.h>
#include <monkey/worker.h>
#include <stdarg.h>
#include <stdlib.h>

struct stream {
    struct mk_sse_stream *sse;
    struct stream *next;
};

/* A list for each worker. Only the thread of the worker accesses it, so it needs no lock. */
static struct stream *streams[THREADS];

static struct mk_server *server;

static void on_close(void *ctx, struct mk_sse_stream *sse)
{
    struct mk_worker *worker = mk_request_worker(mk_sse_stream_request(sse));
    struct stream **at = &streams[mk_worker_index(worker)];
    while (*at != ctx)
        at = &(*at)->next;
    *at = (*at)->next;
    free(ctx);
}

static const struct mk_sse_stream_ops ops = {.on_close = on_close};
static const struct mk_sse_stream_options options = {.ops = &ops};

static enum mk_verdict open_log(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!auth_check(request, response))
        return MK_ERROR;
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream || mk_sse_stream_open(request, response, &options, stream, &stream->sse)) {
        free(stream);
        return MK_ERROR;
    }
    struct stream **list = &streams[mk_worker_index(mk_request_worker(request))];
    stream->next = *list;
    *list = stream;
    return MK_DONE;
}

/* ---- Sending, from any thread ---- */

struct line {
    size_t len;
    char text[256]; /* the line, formatted as an event */
};

/* Runs once in each worker. A client whose queue is full misses the line. */
static void send_line(struct mk_worker *worker, void *ctx)
{
    const struct line *line = ctx;
    for (struct stream *at = streams[mk_worker_index(worker)]; at; at = at->next)
        (void)mk_sse_stream_send_text(at->sse, mk_str_of(line->text, line->len));
}

void log_line(const char *fmt, ...)
{
    char text[160];
    struct mk_buf message = mk_buf_fixed(text, sizeof text);
    struct line *line = malloc(sizeof *line);
    if (!line)
        return;
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&message, fmt, args);
    va_end(args);
    struct mk_buf out = mk_buf_fixed(line->text, sizeof line->text);
    const struct mk_sse_event event = {.data = mk_buf_str(&message)};
    int err = mk_sse_write(&out, &event);
    line->len = out.len;
    if (err || mk_server_post(server, send_line, free, line))
        free(line); /* the server is not running */
}

int log_add(struct mk_server *s)
{
    server = s;
    return mk_server_set(s, "PLUGINS", "Load", "websocket") ||
           mk_server_add_route(s, "GET /api/log", open_log, NULL);
}
