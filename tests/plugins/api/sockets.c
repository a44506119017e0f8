/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets on demand. Each handler opens sockets with its own options, and all execute messages that begin
 * with a slash and one of these words; they echo other messages:
 *
 * - /close CODE REASON, /drop: closes or aborts the socket
 * - /ping TEXT: sends a ping; the pong becomes a message
 * - /pause MS: delivers no messages for MS ms; 0: resumes at once
 * - /parts A B C: responds with one message in as many frames
 * - /fill N: sends messages of 1000 bytes until one is refused, at most N
 * - /all TEXT: broadcasts to all sockets of the worker, as one message
 * - /about: the subprotocol
 * - /news TEXT: an event for all event streams; /over: ends them
 *
 * The handlers send "space" when the send queue has space again after a refusal. */
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/sse_stream.h>
#include <monkey/websocket.h>

struct member {
    struct mk_websocket *socket;
    struct member *next;
    struct mk_timer timer;
    bool has_pinged;
};

MK_PLUGIN_DECLARE(sockets);

struct reader {
    struct mk_sse_stream *events;
    struct reader *next;
};

struct worker_state {
    struct member *first;
    struct reader *readers;
    unsigned n_closed;
};

static struct worker_state *worker_state_of(const struct mk_websocket *s)
{
    return mk_worker_data(mk_request_worker(mk_websocket_request(s)), &MK_PLUGIN_OF(sockets));
}

static void send_text(struct mk_websocket *s, const char *fmt, ...) MK_API_PRINTF(2, 3);
static void send_text(struct mk_websocket *s, const char *fmt, ...)
{
    char buffer[512];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    (void)mk_websocket_send(s, MK_WEBSOCKET_TEXT, mk_buf_str(&text));
}

static uint64_t number(mk_str *words)
{
    uint64_t n = 0;
    (void)!mk_num_parse(mk_str_word(words), &n);
    return n;
}

static void on_over(struct mk_timer *t)
{
    struct member *m = MK_CONTAINER(t, struct member, timer);
    mk_websocket_resume(m->socket);
}

static void pause_it(struct member *m, uint32_t ms)
{
    mk_websocket_pause(m->socket);
    if (ms)
        mk_timer_set(&m->timer, mk_request_worker(mk_websocket_request(m->socket)), ms);
    else
        mk_websocket_resume(m->socket);
}

static void fill(struct mk_websocket *s, uint64_t max)
{
    char text[1000];
    uint64_t n = 0;
    memset(text, 'x', sizeof text);
    while (n < max && mk_websocket_send(s, MK_WEBSOCKET_TEXT, mk_str_of(text, sizeof text)) == 0)
        n++;
    mk_worker_log(mk_request_worker(mk_websocket_request(s)), MK_LOG_INFO, "sockets: filled with %llu",
                  (unsigned long long)n);
}

static void send_parts(struct mk_websocket *s, mk_str words)
{
    while (words.len) {
        mk_str word = mk_str_word(&words);
        (void)mk_websocket_send_part(s, MK_WEBSOCKET_TEXT, word, words.len == 0);
        if (words.len && mk_websocket_send(s, MK_WEBSOCKET_TEXT, word) != -EBUSY)
            mk_websocket_abort(s);
    }
}

static void send_to_all(struct mk_websocket *s, mk_str text)
{
    struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_TEXT, text);
    for (struct member *at = worker_state_of(s)->first; m && at; at = at->next)
        (void)mk_websocket_send_message(at->socket, m);
    mk_websocket_message_free(m);
}

static void send_to_streams(struct mk_websocket *s, mk_str text)
{
    struct mk_sse_event e = {.name = MK_STR("news"), .id = MK_STR("7"), .data = text};
    struct mk_buf once = mk_buf_growing(1 << 20);
    int failed = mk_sse_write(&once, &e);
    for (struct reader *at = worker_state_of(s)->readers; !failed && at; at = at->next) {
        int sent = mk_sse_stream_send_text(at->events, mk_buf_str(&once));
        failed = sent == -EAGAIN ? sent : failed;
    }
    send_text(s, "news %d", failed);
    mk_buf_free(&once);
}

static void end_streams(struct mk_websocket *s)
{
    for (struct reader *at = worker_state_of(s)->readers; at; at = at->next)
        mk_sse_stream_end(at->events);
}

/* Returns false if the message is not a command. */
static bool run_command(struct member *m, mk_str words)
{
    struct mk_websocket *s = m->socket;
    mk_str what = mk_str_word(&words);
    words = mk_str_trim(words);
    if (mk_str_eq(what, MK_STR("/close"))) {
        unsigned code = (unsigned)number(&words);
        if (mk_websocket_close(s, code, mk_str_trim(words)))
            send_text(s, "no");
        else if (mk_websocket_close(s, 1000, MK_STR_NULL) != -EALREADY ||
                 mk_websocket_send(s, MK_WEBSOCKET_TEXT, what) != -ESHUTDOWN)
            mk_websocket_abort(s);
    } else if (mk_str_eq(what, MK_STR("/drop")))
        mk_websocket_abort(s);
    else if (mk_str_eq(what, MK_STR("/ping"))) {
        m->has_pinged = true;
        send_text(s, "ping %d", mk_websocket_ping(s, words));
    } else if (mk_str_eq(what, MK_STR("/pause")))
        pause_it(m, (uint32_t)number(&words));
    else if (mk_str_eq(what, MK_STR("/parts")))
        send_parts(s, words);
    else if (mk_str_eq(what, MK_STR("/fill")))
        fill(s, number(&words));
    else if (mk_str_eq(what, MK_STR("/all")))
        send_to_all(s, words);
    else if (mk_str_eq(what, MK_STR("/news")))
        send_to_streams(s, words);
    else if (mk_str_eq(what, MK_STR("/over")))
        end_streams(s);
    else if (mk_str_eq(what, MK_STR("/about")))
        send_text(s, "%.*s", MK_STR_ARG(mk_websocket_subprotocol(s)));
    else
        return false;
    return true;
}

static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    if (kind == MK_WEBSOCKET_TEXT && mk_str_starts(data, MK_STR("/")) && run_command(ctx, data))
        return;
    if (mk_websocket_send(s, kind, data)) /* a reply sent in on_message() always fits */
        mk_websocket_abort(s);
}

static void on_room(void *ctx, struct mk_websocket *s)
{
    (void)ctx;
    send_text(s, "space");
}

static void on_pong(void *ctx, struct mk_websocket *s, mk_str data)
{
    if (((struct member *)ctx)->has_pinged)
        send_text(s, "pong %.*s", MK_STR_ARG(data));
}

static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    struct member *m = ctx, **at = &worker_state_of(s)->first;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    mk_worker_log(mk_request_worker(mk_websocket_request(s)), MK_LOG_INFO, "sockets: closed %u %.*s", code,
                  MK_STR_ARG(reason));
    if (mk_websocket_send(s, MK_WEBSOCKET_TEXT, reason) != -ESHUTDOWN)
        mk_worker_log(mk_request_worker(mk_websocket_request(s)), MK_LOG_ERROR, "sockets: it is not over");
    mk_websocket_abort(s);
    mk_timer_stop(&m->timer);
    mk_mem_free(m);
}

static enum mk_verdict open_it(struct mk_request *request, struct mk_response *response,
                               const struct mk_websocket_options *options)
{
    struct worker_state *worker_state = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(sockets));
    struct member *m = mk_mem_zalloc(1, sizeof *m);
    if (!m)
        return MK_ERROR;
    mk_timer_init(&m->timer, on_over);
    int e = mk_websocket_open(request, response, options, m, &m->socket);
    if (e) {
        mk_mem_free(m);
        return e == -EINVAL ? MK_NEXT : MK_ERROR;
    }
    m->next = worker_state->first;
    worker_state->first = m;
    return MK_DONE;
}

static const struct mk_websocket_ops ops = {
    .on_message = on_message, .on_writable = on_room, .on_pong = on_pong, .on_close = on_close};

static const struct mk_websocket_options
    echo = {.ops = &ops, .subprotocols = "chat, other", .message_max = 32 << 20, .queue_max = 1 << 20},
    packed = {.ops = &ops, .flags = MK_WEBSOCKET_COMPRESS, .message_max = 32 << 20},
    context = {.ops = &ops,
               .flags = MK_WEBSOCKET_COMPRESS | MK_WEBSOCKET_KEEP_CONTEXT,
               .message_max = 32 << 20,
               .ping_ms = 300},
    kept = {.ops = &ops, .flags = MK_WEBSOCKET_COMPRESS | MK_WEBSOCKET_KEEP_CONTEXT, .message_max = 32 << 20},
    small = {.ops = &ops,
             .message_max = 1000,
             .frame_max = 500,
             .queue_max = 4096,
             .flags = MK_WEBSOCKET_COMPRESS},
    hasty = {.ops = &ops, .ping_ms = 300, .close_ms = 300, .queue_max = 64 << 20},
    guarded = {.ops = &ops, .origins = "same https:*.example.org"};

#define HANDLER(what)                                                                                        \
    static enum mk_verdict open_##what(struct mk_request *request, struct mk_response *response, void *data) \
    {                                                                                                        \
        (void)data;                                                                                          \
        return open_it(request, response, &what);                                                            \
    }                                                                                                        \
    static const struct mk_handler what##_handler = {                                                        \
        .name = "socket-" #what, .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = open_##what};
HANDLER(echo)
HANDLER(packed)
HANDLER(context)
HANDLER(kept)
HANDLER(small)
HANDLER(hasty)
HANDLER(guarded)

/* ---- Server-sent events ---- */

static void on_events_writable(void *ctx, struct mk_sse_stream *s)
{
    const struct mk_sse_event e = {.data = MK_STR("space")};
    (void)ctx;
    (void)mk_sse_stream_send(s, &e);
}

static void on_events_close(void *ctx, struct mk_sse_stream *s)
{
    struct reader *r = ctx;
    struct worker_state *worker_state =
        mk_worker_data(mk_request_worker(mk_sse_stream_request(s)), &MK_PLUGIN_OF(sockets));
    struct reader **at = &worker_state->readers;
    const struct mk_sse_event e = {.data = MK_STR("late")};
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    mk_worker_log(mk_request_worker(mk_sse_stream_request(s)), MK_LOG_INFO, "sockets: events over, %d",
                  mk_sse_stream_send(s, &e) == -ESHUTDOWN);
    mk_mem_free(r);
}

static const struct mk_sse_stream_ops events_ops = {.on_writable = on_events_writable,
                                                    .on_close = on_events_close};
static const struct mk_sse_stream_options events_options = {
    .ops = &events_ops, .keepalive_ms = 300, .queue_max = 10000};

static enum mk_verdict open_events(struct mk_request *request, struct mk_response *response, void *data)
{
    struct worker_state *worker_state = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(sockets));
    struct reader *r = mk_mem_zalloc(1, sizeof *r);
    (void)data;
    if (!r || mk_sse_stream_open(request, response, &events_options, r, &r->events)) {
        mk_mem_free(r);
        return MK_ERROR;
    }
    r->next = worker_state->readers;
    worker_state->readers = r;
    const struct mk_sse_event e = {.data = mk_sse_stream_last_id(r->events), .retry_ms = 2000};
    (void)mk_sse_stream_send(r->events, &e);
    return MK_DONE;
}

static const struct mk_handler events_handler = {.name = "events", .handle = open_events};

static int worker_start(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(sockets), mk_mem_zalloc(1, sizeof(struct worker_state)));
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    struct worker_state *worker_state = mk_worker_data(worker, &MK_PLUGIN_OF(sockets));
    (void)data;
    if (worker_state->first || worker_state->readers)
        mk_worker_log(worker, MK_LOG_ERROR, "sockets: one was not closed");
    mk_mem_free(worker_state);
}

static const char *const needs[] = {"websocket", NULL};

MK_PLUGIN(sockets) = {
    MK_PLUGIN_HEAD,
    .name = "sockets",
    .handlers = (const struct mk_handler *const[]){&echo_handler, &packed_handler, &context_handler,
                                                   &kept_handler, &small_handler, &hasty_handler,
                                                   &guarded_handler, &events_handler, NULL},
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .needs = needs,
};
