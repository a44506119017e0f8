/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an HTTP/2 client whose steps are the bytes of the input: a request from a list, body data, settings,
 * any frame, any bytes, how much arrives and how much the client accepts, or time that passes. The target
 * checks the output strictly (unit/h2_client.h); each stream leaves one log record, and the connection always
 * ends after some time. */
#include "fuzz/server_fixture.h"
#include "http2/h2.h"
#include "http2/h2_types.h"
#include "unit/h2_client.h"

extern const struct mk_http2_module mk_h2_module;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 20000, SAY_MAX = 1 << 22, LATER_MS = 40000, ROUNDS_MAX = 100 };

static const struct mk_conn_manager_limits limits = {
    .head = {.head_max = 2000, .target_max = 200, .fields_max = 16},
    .h2 = {.on = true, .streams_max = 6, .unread_max = 200000, .abuse_budget = 150},
    .request.content_max = 100000,
    .requests_max = 60,
    .connections_max = 4,
    .keep_alive = true,
    .head_ms = 10000,
    .idle_ms = 10000,
    .linger_ms = 10000,
    .request.handler_ms = 20000,
    .request.tunnel_ms = 20000,
    .request.rate_ms = 10000,
    .request.rate_bytes = 100,
};

/* ---- The peer ---- */

static struct mk_buf input, output;
static size_t noted; /* length of the input that has been analyzed */
static struct mk_conn *conn;
static struct h2_client client;
static struct mk_hpack_decoder *own_decoder; /* for the client's own headers */
static struct mk_buf own_block;
static uint32_t own_stream;
static bool greeted;
static bool full; /* the client has reached a limit of the test */

static void on_received(mk_str bytes)
{
    mk_buf_add(&output, bytes);
    MK_ASSERT(!output.failed);
    if (conn->ops == &mk_h1_ops) /* the preface is incomplete */
        return;
    mk_buf_consume(&output, h2_receive(&client, mk_buf_str(&output)));
    if (client.why)
        fprintf(stderr, "on stream %u: %s\n", client.where, client.why);
    MK_ASSERT(!client.why);
}

/* ---- Analysis of the client's own input ---- */

static int note_head_method(void *is_head, mk_str name, mk_str value)
{
    if (mk_str_eq(name, MK_STR(":method")))
        *(bool *)is_head = mk_str_eq(value, MK_STR("HEAD"));
    return 0;
}

static void note_block(void)
{
    bool is_head = false, is_new = !h2_find(&client, own_stream);
    if (mk_hpack_decode(own_decoder, mk_buf_str(&own_block), note_head_method, &is_head) == 0 && is_new)
        h2_expect(&client, own_stream)->is_head = is_head;
    else if (is_new)
        h2_expect(&client, own_stream);
    mk_buf_clear(&own_block);
    own_stream = 0;
}

static void note_head(const struct mk_h2_frame *f, mk_str payload)
{
    bool is_head = f->type == MK_H2_HEADERS;
    if (is_head && !mk_h2_frame_unpad(f, &payload))
        return;
    if (is_head)
        own_stream = f->stream;
    mk_buf_add(&own_block, payload);
    if (f->flags & MK_H2_END_HEADERS && f->stream == own_stream && own_stream)
        note_block();
}

static void note_settings(const struct mk_h2_frame *f, mk_str payload)
{
    unsigned id;
    uint32_t value;
    struct h2_pending p = {0, client.n};
    if (f->flags & MK_H2_ACK || client.n_pending == H2_PENDING)
        return;
    while (mk_h2_frame_next_setting(&payload, &id, &value))
        if (id == MK_H2_INITIAL_WINDOW_SIZE) {
            p.by += (int64_t)value - client.initial;
            client.initial = value;
        }
    client.pending[client.n_pending++] = p;
    full |= client.n_pending == H2_PENDING;
}

static void note_frame(const struct mk_h2_frame *f, mk_str payload)
{
    struct h2_stream *s = h2_find(&client, f->stream);
    switch (f->type) {
    case MK_H2_HEADERS:
    case MK_H2_CONTINUATION:
        full |= client.n + 1 == H2_STREAMS;
        if (!full)
            note_head(f, payload);
        break;
    case MK_H2_SETTINGS:
        note_settings(f, payload);
        break;
    case MK_H2_WINDOW_UPDATE:
        if (f->length == 4 && !f->stream)
            client.window += mk_h2_frame_read_u32(payload) & MK_H2_WINDOW_MAX;
        else if (f->length == 4 && s)
            s->window += mk_h2_frame_read_u32(payload) & MK_H2_WINDOW_MAX;
        break;
    case MK_H2_RST_STREAM:
        if (s)
            s->left = true;
        break;
    default:
        break;
    }
}

static void note_said(void)
{
    peer.sent = mk_buf_str(&input);
    mk_str in = mk_str_skip(peer.sent, noted);
    if (!greeted && in.len >= MK_H2_PREFACE.len) {
        greeted = true;
        in = mk_str_skip(in, MK_H2_PREFACE.len);
    }
    while (greeted && in.len >= MK_H2_FRAME_HEAD) {
        struct mk_h2_frame f = mk_h2_frame_parse(in);
        if (in.len < MK_H2_FRAME_HEAD + (size_t)f.length)
            break;
        note_frame(&f, mk_str_of(in.p + MK_H2_FRAME_HEAD, f.length));
        in = mk_str_skip(in, MK_H2_FRAME_HEAD + (size_t)f.length);
    }
    noted = peer.sent.len - in.len;
}

/* ---- Log records ---- */

static struct {
    unsigned status;
    enum mk_outcome outcome;
    bool made;
} records[H2_STREAMS];

static void on_done(const struct mk_access_record *record, void *data)
{
    const struct mk_h2_stream *s = record->request->ops_ctx;
    (void)data;
    if (conn->ops == &mk_h1_ops)
        return;
    MK_ASSERT(record->request->version == 20);
    struct h2_stream *known = h2_find(&client, s->id);
    MK_ASSERT(known);
    size_t i = (size_t)(known - client.at);
    MK_ASSERT(!records[i].made);
    records[i].made = true;
    records[i].status = record->status;
    records[i].outcome = record->outcome;
}

/* Checks the responses once all output has arrived. */
static void check_answers(void)
{
    for (unsigned i = 0; i < client.n; i++) {
        const struct h2_stream *s = &client.at[i];
        if (s->left)
            continue;
        if (records[i].made && s->status)
            MK_ASSERT(s->status == records[i].status);
        if (records[i].made && records[i].outcome == MK_OUTCOME_OK)
            MK_ASSERT(s->ended);
    }
}

/* ---- The server ---- */

static void begin(void)
{
    static char large[200000];
    server_begin(&limits, on_done);
    site_add(&site, "large", mk_str_of(large, sizeof large));
    mk_conn_manager_set_http2(&manager, &mk_h2_module);
    site.host.pack_head = mk_h2_module.pack_head;
    handlers.loop = &loop;
}

/* A waiting stream must have a timer or a handler that will resume it. */
static void check_stream(const struct mk_h2_stream *s)
{
    MK_ASSERT(s->timeout || !mk_list_empty(&s->queue_link) || s->d.pending_prefetch);
    MK_ASSERT(s->receive_window <= 256 * 1024);
}

static void check_h2(const struct mk_conn *c)
{
    const struct mk_h2 *h2 = c->h2;
    unsigned n = 0;
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        for (const struct mk_h2_stream *s = h2->buckets[i]; s; s = s->next, n++)
            check_stream(s);
    MK_ASSERT(n == h2->n_streams && n <= limits.h2.streams_max);
    MK_ASSERT(c->timeout || n > 0);
    bool waits = !mk_send_queue_is_empty(&c->out);
    for (unsigned u = 0; u < MK_URGENCIES; u++)
        waits |= !mk_list_empty(&h2->ready[u]);
    MK_ASSERT(!waits || c->timeout == MK_TIMEOUT_RATE);
    MK_ASSERT(mk_send_queue_len(&c->out) < 512 * 1024);
}

static void run_tasks(const struct mk_conn *c)
{
    int steps = 0;
    while (loop.tasks && !peer.closed) {
        mk_loop_run_tasks(&loop);
        MK_ASSERT(++steps < STEPS_MAX);
    }
    check_at_rest(c);
    if (!peer.closed && c->state.current == MK_CONN_HTTP2)
        check_h2(c);
}

static void advance(struct mk_conn *c)
{
    if (peer.closed)
        return;
    mk_stream_on_input(&c->stream, false);
    c->ops->advance(c);
    run_tasks(c);
}

static void pass_time(struct mk_conn *c, uint32_t ms)
{
    loop.now_ms += ms;
    mk_timer_wheel_advance(&loop.wheel, loop.now_ms);
    run_tasks(c);
}

/* ---- Steps of the client ---- */

static const char *const requests[] = {
    ":method: GET\n:scheme: http\n:authority: a\n:path: /\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /large\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /large\nrange: bytes=5-9,100-70000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /early\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /early\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /sink\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /sink\ncontent-length: 500\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /sink\nexpect: 100-continue\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /echo\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /echo\nexpect: 100-continue\npriority: u=1, i\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /sip?n=500\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /source?n=90000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /source?n=90000&unknown=1\npriority: u=5, i\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /source?n=0&unknown=1\n",
    ":method: HEAD\n:scheme: http\n:authority: a\n:path: /source?n=90000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /broken?n=0\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /broken?n=150000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /liar?n=1000&has=600\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /mad?n=30000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /mad?n=100000\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /never\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /never\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /slow?ms=100\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /slow?ms=100\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /drip?n=5&ms=50\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /trailers\nte: trailers\n",
    ":method: POST\n:scheme: http\n:authority: a\n:path: /trailers\n",
    (":method: CONNECT\n:protocol: websocket\n:scheme: http\n:authority: a\n:path: /tunnel?n=100\n"
     "sec-websocket-version: 13\n"),
    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel?n=90000\n",
    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel?n=90&stops=600\n",
    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /tunnel?n=90&fails=6\n",
    ":method: CONNECT\n:protocol: other\n:scheme: http\n:authority: a\n:path: /early\n",
    ":method: CONNECT\n:authority: a:443\n",
    ":method: OPTIONS\n:scheme: http\n:authority: a\n:path: *\n",
    ":method: GET\n:scheme: http\n:path: /\n",
    ":method: GET\n:scheme: http\n:authority: a\n:path: /\nconnection: close\n",
    "x-trailer: one\n",
    "",
};

static const char *const priorities[] = {"u=0", "u=7", "i", "u=3, i", "nonsense", ""};
static const uint32_t amounts[] = {0,    1,     2,     63,    100,     255,
                                   1000, 16384, 65535, 65536, 1000000, MK_H2_WINDOW_MAX};
static const uint32_t sizes[] = {0, 1, 5, 100, 499, 1000, 4096, 16383, 16384, 9000, 0, 2};
static const uint16_t setting_ids[] = {1, 2, 3, 4, 4, 4, 5, 6, 8, 9, 99, 4};

struct script {
    const uint8_t *at, *end;
};

static uint8_t next(struct script *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Returns the ID of the newest stream, of a stream to open, of a recent stream, or a small ID. */
static uint32_t choose_stream(struct script *s)
{
    uint8_t b = next(s);
    if (b == 0)
        return client.highest ? client.highest : 1;
    if (b < 0x20)
        return client.highest + 2 * (b % 3u) - (client.highest % 2 ? 0 : 1);
    if (b < 0xf0 && client.n)
        return client.at[client.n - 1 - b % mk_min(client.n, 8u)].id;
    return b % 4u;
}

static mk_str filler(size_t n)
{
    static char bytes[MK_H2_FRAME_MAX + 1];
    return mk_str_of(bytes, n);
}

static void send_request(struct script *s, bool in_pieces)
{
    struct mk_buf block = mk_buf_growing(1 << 16);
    const char *fields = requests[next(s) % MK_LEN(requests)];
    uint8_t how = next(s);
    uint32_t id = how & 2 ? choose_stream(s) : client.highest ? client.highest + 2 : 1;
    h2_pack(&block, fields);
    unsigned end_stream = how & 1 ? MK_H2_END_STREAM : 0;
    if (in_pieces) {
        size_t cut = mk_min(block.len, (size_t)next(s));
        h2_send_frame(&input, MK_H2_HEADERS, end_stream, id, mk_str_first(mk_buf_str(&block), cut));
        if (!(how & 4))
            h2_send_frame(&input, MK_H2_CONTINUATION, MK_H2_END_HEADERS, id,
                          mk_str_skip(mk_buf_str(&block), cut));
    } else {
        h2_send_frame(&input, MK_H2_HEADERS, end_stream | MK_H2_END_HEADERS, id, mk_buf_str(&block));
    }
    mk_buf_free(&block);
}

static void send_data(struct script *s)
{
    uint32_t id = choose_stream(s);
    uint8_t how = next(s);
    unsigned flags = (how & 0x10 ? MK_H2_END_STREAM : 0u) | (how & 0x20 ? MK_H2_PADDED : 0u);
    h2_send_frame(&input, MK_H2_DATA, flags, id, filler(sizes[(how & 15) % MK_LEN(sizes)]));
}

static void send_settings(struct script *s)
{
    unsigned n = next(s) % 3u;
    mk_h2_frame_emit_head(&input, 6 * n, MK_H2_SETTINGS, 0, 0);
    while (n--) {
        unsigned id = setting_ids[next(s) % MK_LEN(setting_ids)];
        mk_h2_frame_emit_setting(&input, (enum mk_h2_setting)id, amounts[next(s) % MK_LEN(amounts)]);
    }
}

static void send_priority(struct script *s)
{
    const char *text = priorities[next(s) % MK_LEN(priorities)];
    uint32_t id = choose_stream(s);
    mk_h2_frame_emit_head(&input, 4 + (uint32_t)strlen(text), MK_H2_PRIORITY_UPDATE, 0, 0);
    mk_h2_frame_emit_u32(&input, id);
    mk_buf_add(&input, mk_str_from_c(text));
}

static mk_str next_bytes(struct script *s, size_t n)
{
    n = mk_min(n, (size_t)(s->end - s->at));
    mk_str bytes = mk_str_of((const char *)s->at, n);
    s->at += n;
    return bytes;
}

static void send_any_frame(struct script *s)
{
    unsigned type = next(s) % 18u, flags = next(s);
    uint32_t id = next(s) & 1 ? choose_stream(s) : 0;
    h2_send_frame(&input, type, flags, id, next_bytes(s, next(s)));
}

static void arrive(struct script *s, struct mk_conn *c)
{
    peer.arrived = mk_min(peer.arrived + next(s), peer.sent.len);
    advance(c);
}

static void arrive_all(struct mk_conn *c)
{
    peer.arrived = peer.sent.len;
    advance(c);
}

static void drain(struct mk_conn *c)
{
    if (peer.closed || manager.draining || c->ops != &mk_h2_ops)
        return;
    manager.draining = true;
    c->ops->on_drain(c);
    run_tasks(c);
}

static void end_input(struct mk_conn *c)
{
    peer.arrived = peer.sent.len;
    peer.ended = c->stream.ended = true;
    advance(c);
}

static void act(struct script *s, struct mk_conn *c)
{
    uint8_t b = next(s);
    switch (b % 20) {
    case 0:
    case 1:
        send_request(s, false);
        break;
    case 2:
        send_request(s, true);
        break;
    case 3:
    case 4:
        send_data(s);
        break;
    case 5:
        mk_h2_frame_emit_rst_stream(&input, choose_stream(s), MK_H2_CANCEL);
        break;
    case 6:
        mk_h2_frame_emit_window_update(&input, choose_stream(s), amounts[next(s) % MK_LEN(amounts)]);
        break;
    case 7:
        mk_h2_frame_emit_window_update(&input, 0, amounts[next(s) % MK_LEN(amounts)]);
        break;
    case 8:
        send_settings(s);
        break;
    case 9:
        mk_h2_frame_emit_ping(&input, next(s) & 1, MK_STR("12345678"));
        break;
    case 10:
        send_priority(s);
        break;
    case 11:
        send_any_frame(s);
        break;
    case 12:
        mk_buf_add(&input, next_bytes(s, next(s)));
        break;
    case 13:
        peer.write_max = accept_sizes[next(s) & 7];
        advance(c);
        break;
    case 14:
    case 15:
        arrive_all(c);
        break;
    case 16:
        arrive(s, c);
        break;
    case 17:
        pass_time(c, next(s) * 50u);
        break;
    case 18:
        if (next(s) & 1)
            drain(c);
        else
            mk_h2_frame_emit_goaway(&input, 0, MK_H2_NO_ERROR);
        break;
    case 19:
        if (next(s) == 77)
            end_input(c);
        break;
    }
}

static void play(struct mk_conn *c, struct script *s)
{
    while (s->at < s->end && !peer.closed && !full && input.len < SAY_MAX / 2) {
        note_said();
        act(s, c);
        note_said();
    }
    note_said();
    if (full) { /* the input can no longer be analyzed */
        mk_conn_close_all(&manager, MK_OUTCOME_SHUTDOWN);
        return;
    }
    peer.write_max = SIZE_MAX;
    for (int i = 0; i < 3; i++)
        arrive_all(c);
    if (!peer.closed && c->state.current != MK_CONN_DEAD)
        check_answers();
    for (int i = 0; i < ROUNDS_MAX && !peer.closed; i++)
        pass_time(c, LATER_MS);
    MK_ASSERT(peer.closed);
}

static void forget_peer(void)
{
    h2_fini(&client);
    mk_hpack_decoder_free(own_decoder);
    mk_buf_free(&own_block);
    mk_buf_free(&input);
    mk_buf_free(&output);
}

static void make_peer(bool greets)
{
    memset(&peer, 0, sizeof peer);
    memset(records, 0, sizeof records);
    input = mk_buf_growing(SAY_MAX);
    output = mk_buf_growing(SAY_MAX);
    noted = 0;
    peer.write_max = SIZE_MAX;
    own_decoder = mk_hpack_decoder_new();
    own_block = mk_buf_growing(SAY_MAX);
    own_stream = 0;
    greeted = full = false;
    h2_init(&client);
    mk_buf_add(&input, MK_H2_PREFACE);
    if (greets)
        h2_send_frame(&input, MK_H2_SETTINGS, 0, 0, MK_STR(""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, data + size};
    if (!manager.input_buffer.in)
        begin();
    make_peer(!(next(&script) & 1));
    manager.draining = false;
    struct mk_conn *c = conn = peer_connect();
    advance(c);
    play(c, &script);
    mk_loop_run_tasks(&loop);
    MK_ASSERT(manager.n_conns == 0);
    for (unsigned i = 0; i < client.n; i++) /* each stream with a response has left a record */
        MK_ASSERT(!client.at[i].status || records[i].made);
    forget_peer();
    return 0;
}
