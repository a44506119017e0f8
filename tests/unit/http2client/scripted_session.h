/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 session without a socket, and three requests: a test supplies the bytes of the server. No stream may
 * receive anything but valid events, and memory is bounded. Include it once. */
#ifndef MK_UNIT_HTTP2CLIENT_SCRIPTED_SESSION_H
#define MK_UNIT_HTTP2CLIENT_SCRIPTED_SESSION_H

#include <errno.h>

#include "base/assert.h"
#include "http2client/h2_codec.h"
#include "http2client/h2_session_input.h"
#include "http2client/h2_session_stream.h"
#include "http2client/h2_session_write.h"
#include "upstream/server.h"

enum { STREAMS = 3, QUEUE_MAX = 16 * MK_H2_SESSION_WIDE_WINDOW, FIELDS = 100, OUT_MAX = 4 << 20 };

/* A request: its head was sent, and it reads its response. */
struct call {
    struct mk_upstream_conn conn;
    struct mk_codec_response_state input;
    struct mk_header_field fields[FIELDS];
    uint64_t received;
    bool is_over;
};

static struct call calls[STREAMS];
static mk_str arriving;
static size_t piece_max;

/* ---- What the session calls ---- */

const struct mk_state_machine mk_upstream_conn_machine = {
    .name = "connection",
    .states = &(const struct mk_state_table){.next = {0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff}},
    .n_states = MK_UPSTREAM_CONN_STATES};

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *c, char *buf, size_t cap)
{
    size_t n = mk_min(mk_min(cap, piece_max), arriving.len);
    (void)c;
    if (!n)
        return -EAGAIN;
    memcpy(buf, arriving.p, n);
    arriving = mk_str_skip(arriving, n);
    return (ssize_t)n;
}

bool mk_upstream_conn_is_readable(const struct mk_upstream_conn *c)
{
    (void)c;
    return arriving.len > 0;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *c, mk_str bytes, bool more)
{
    (void)c, (void)more;
    return (ssize_t)bytes.len;
}

void mk_upstream_conn_fail(struct mk_upstream_conn *c, int error)
{
    c->error = error;
}

void mk_pool_schedule_sweep(struct mk_pool *p)
{
    (void)p;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return false;
}

uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return 1;
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_deferred_post(struct mk_deferred *t)
{
    (void)t;
}

/* ---- Requests ---- */

static void check_head(const struct call *c)
{
    const struct mk_headers *fields = &c->input.reply.head.fields;
    MK_ASSERT(c->input.reply.head.status >= 100 && c->input.reply.head.status <= 599);
    for (unsigned i = 0; i < fields->n; i++)
        MK_ASSERT(mk_is_token(fields->at[i].name) && mk_is_header_value(fields->at[i].value));
}

static void parse_records(struct call *c, mk_str in)
{
    for (;;) {
        mk_str data = MK_STR_NULL;
        switch (mk_h2_codec.read(&c->input, &in, &data)) {
        case MK_RESPONSE_PARSER_MORE:
            return;
        case MK_RESPONSE_PARSER_HEAD:
            check_head(c);
            break;
        case MK_RESPONSE_PARSER_DATA:
        case MK_RESPONSE_PARSER_TRAILERS:
            MK_ASSERT(data.len);
            c->received += data.len;
            break;
        case MK_RESPONSE_PARSER_END:
            MK_ASSERT(!c->input.reply.head.has_length || c->input.reply.request.head ||
                      c->input.reply.head.body != MK_RESPONSE_BODY_LENGTH ||
                      c->input.reply.length == c->input.reply.head.length);
            c->is_over = true;
            return;
        case MK_RESPONSE_PARSER_ERROR:
            c->is_over = true;
            return;
        }
    }
}

static void read_response(void *ctx, unsigned which)
{
    struct call *c = ctx;
    char buf[1000];
    ssize_t n = 0;
    (void)which;
    while (!c->is_over && (n = c->conn.stream.ops->read(&c->conn.stream, buf, sizeof buf)) > 0)
        parse_records(c, mk_str_of(buf, (size_t)n));
}

static bool start_call(struct mk_h2_session *ss, struct call *c, unsigned i)
{
    *c = (struct call){.conn = {.on_event = read_response}};
    struct mk_response_parser_options options = {.head = i == 1, .upgrade = i == 2};
    c->conn.ctx = c;
    c->conn.options.http2_tunnel = i == 2;
    mk_response_parser_init(&c->input.reply, options, c->fields, FIELDS);
    return mk_h2_session_stream_attach(ss, &c->conn);
}

static void send_request(struct call *c, unsigned i)
{
    char text[256];
    const char *problem;
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    struct mk_header host = {MK_STR("Host"), MK_STR("a")};
    struct mk_upstream_request_options options = {.method = i == 1 ? MK_STR("HEAD") : MK_STR("GET"),
                                                  .target = MK_STR("/"),
                                                  .headers = &host,
                                                  .n_headers = 1};
    if (i == 2)
        options.upgrade = MK_STR("websocket");
    MK_ASSERT(mk_h2_codec.write_head(&out, &options, &problem) == 0 && !out.failed);
    (void)c->conn.stream.ops->write(&c->conn.stream, mk_buf_str(&out), false);
}

/* Calls the owners of the streams, as h2_session.c does. */
static void notify(struct mk_h2_session *ss)
{
    while (!mk_list_empty(&ss->ready)) {
        struct mk_h2_session_stream *s = MK_LIST_ENTRY(ss->ready.next, struct mk_h2_session_stream, ready);
        mk_list_remove(&s->ready);
        MK_ASSERT(s->to - s->from <= QUEUE_MAX);
        s->conn->on_event(s->conn->ctx, s->events);
    }
}

/* Sends three requests, and reads `bytes` in pieces of up to `piece` bytes. Without memory for the session or
 * the requests, does nothing. */
static inline void scripted_session_run(mk_str bytes, size_t piece)
{
    static const char settings[] = "\0\0\6\4\0\0\0\0\0\0\10\0\0\0\1"; /* tunnels are supported */
    static char scratch[MK_H2_SESSION_INPUT_SCRATCH];
    struct mk_upstream_settings none = {0};
    struct mk_upstream upstream = {.settings = &none, .keep = 1};
    struct mk_upstream_server server = {.upstream = &upstream};
    struct mk_pool pool = {.blocks.size = MK_POOL_BLOCK};
    struct mk_backend backend = {.pool = &pool, .server = &server};
    struct mk_h2_session ss = {.backend = &backend,
                               .out = mk_buf_growing(OUT_MAX),
                               .in = mk_buf_growing(MK_H2_SESSION_INPUT_MAX),
                               .next_id = 1,
                               .send_window = MK_H2_WINDOW,
                               .stream_window = MK_H2_WINDOW,
                               .frame_max = MK_H2_FRAME_MAX,
                               .streams_max = MK_H2_SESSION_STREAMS_MAX,
                               .receive_window = MK_H2_SESSION_WINDOW,
                               .decoder = mk_hpack_decoder_new(),
                               .scratch = scratch};
    struct mk_list *lists[] = {&ss.link, &ss.unflushed, &ss.streams, &ss.ready, &ss.blocked, &pool.unflushed};
    for (size_t i = 0; i < MK_LEN(lists); i++)
        mk_list_init(lists[i]);
    mk_state_init(&ss.conn.state, &mk_upstream_conn_machine, MK_UPSTREAM_CONN_OPEN);
    unsigned n = 0;
    while (ss.decoder && n < STREAMS && start_call(&ss, &calls[n], n))
        n++;
    if (n == STREAMS)
        (void)mk_h2_session_input_parse(&ss, mk_str_of(settings, sizeof settings - 1));
    for (unsigned i = 0; i < n && ss.state.current == MK_H2_SESSION_OPEN; i++)
        send_request(&calls[i], i);
    piece_max = piece;
    arriving = n == STREAMS ? bytes : MK_STR("");
    while (arriving.len && ss.state.current != MK_H2_SESSION_FAILED) {
        (void)mk_h2_session_input_read(&ss);
        notify(&ss);
        mk_h2_session_write_flush(&ss);
    }
    notify(&ss);
    for (unsigned i = 0; i < n; i++) {
        calls[i].conn.stream.ops->close(&calls[i].conn.stream);
        mk_response_parser_fini(&calls[i].input.reply);
    }
    MK_ASSERT(!ss.n_streams && mk_list_empty(&ss.streams) && mk_list_empty(&ss.blocked));
    mk_buf_free(&ss.out);
    mk_buf_free(&ss.in);
    mk_buf_free(&ss.block);
    mk_hpack_decoder_free(ss.decoder);
    mk_freelist_fini(&pool.blocks);
}

#endif
