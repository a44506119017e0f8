/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_session_input.h"

#include <errno.h>

#include "http2client/h2_response_head.h"
#include "http2client/h2_session_stream.h"
#include "http2client/h2_session_write.h"

enum {
    FRAMES_OF_BLOCK_MAX = 32,
    READS_MAX = 32,      /* reads before other connections have their turn */
    USELESS_MAX = 10000, /* useless frames within USELESS_MS */
    USELESS_MS = 1000,
    TINY_WINDOW = 256, /* smaller increments of a window count as useless */
};

static bool is_alive(const struct mk_h2_session *ss)
{
    return ss->state.current != MK_H2_SESSION_FAILED;
}

static void fail_protocol(struct mk_h2_session *ss, const char *problem)
{
    mk_h2_session_write_goaway(ss, MK_H2_PROTOCOL_ERROR, problem);
}

/* Counts a frame that brings no response forward. False: the server floods the session. */
static bool count_useless_frame(struct mk_h2_session *ss)
{
    uint64_t now = mk_worker_now_ms(ss->backend->pool->worker);
    if (now - ss->useless_since_ms >= USELESS_MS) {
        ss->useless_since_ms = now;
        ss->n_useless = 0;
    }
    if (++ss->n_useless <= USELESS_MAX)
        return true;
    mk_h2_session_write_goaway(ss, MK_H2_ENHANCE_YOUR_CALM,
                               "the server floods the connection with HTTP/2 frames");
    return false;
}

/* Has this side opened no stream with this identifier yet? */
static bool is_idle_stream(const struct mk_h2_session *ss, uint32_t id)
{
    return id % 2 == 0 || id >= ss->next_id;
}

/* ---- Body ---- */

static bool charge_session_window(struct mk_h2_session *ss, uint32_t length)
{
    ss->receive_window -= length;
    if (ss->receive_window < 0) {
        mk_h2_session_write_goaway(ss, MK_H2_FLOW_CONTROL_ERROR,
                                   "the server ignores the flow control of HTTP/2");
        return false;
    }
    /* The windows of the streams limit what is buffered: a slow reader must not stop other streams. */
    if (ss->receive_window < MK_H2_SESSION_WINDOW / 2) {
        mk_h2_session_write_window_update(ss, 0, (uint32_t)(MK_H2_SESSION_WINDOW - ss->receive_window));
        ss->receive_window = MK_H2_SESSION_WINDOW;
    }
    return true;
}

static void deliver_data(struct mk_h2_session_stream *s, const struct mk_h2_frame *f, mk_str data)
{
    bool ends = f->flags & MK_H2_END_STREAM;
    s->receive_window -= f->length;
    if (s->is_remote_closed)
        mk_h2_session_stream_reset(s, MK_H2_STREAM_CLOSED, -EPROTO,
                                   "the server sent data after the end of its response");
    else if (!s->has_head)
        mk_h2_session_stream_reset(s, MK_H2_PROTOCOL_ERROR, -EPROTO,
                                   "the server sent data before a response head");
    else if (s->receive_window < 0)
        mk_h2_session_stream_reset(s, MK_H2_FLOW_CONTROL_ERROR, -EPROTO,
                                   "the server ignores the flow control of HTTP/2");
    else if (data.len || ends || count_useless_frame(s->session))
        mk_h2_session_stream_receive(s, MK_H2_DATA, f->flags & MK_H2_END_STREAM, data);
}

static void on_data(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_h2_session_stream *s = mk_h2_session_stream_find(ss, f->stream);
    if (!charge_session_window(ss, f->length))
        return;
    if (!mk_h2_frame_unpad(f, &payload) || (!s && is_idle_stream(ss, f->stream)))
        fail_protocol(ss, "the server sent an invalid DATA frame");
    else if (s && !s->error)
        deliver_data(s, f, payload);
    else if (!payload.len) /* other data of a cancelled stream was sent before the server knew */
        (void)count_useless_frame(ss);
}

/* ---- Heads ---- */

static int ignore_header(void *ctx, mk_str name, mk_str value)
{
    (void)ctx;
    (void)name;
    (void)value;
    return -1;
}

/* Every block must be decoded, even for a cancelled stream: it changes the table used by later blocks. False:
 * the session has failed. */
static bool decode_block(struct mk_h2_session *ss, mk_str block, mk_hpack_on_header *on_header, void *ctx)
{
    mk_err e = mk_hpack_decode(ss->decoder, block, on_header, ctx);
    if (e == -EBADMSG)
        mk_h2_session_write_goaway(ss, MK_H2_COMPRESSION_ERROR, "the server sent an invalid header block");
    else if (e == -ENOMEM)
        mk_h2_session_write_fail(ss, -ENOMEM, "no memory for the head of the response");
    return is_alive(ss);
}

/* Is the head complete and in order? */
static const char *check_head(const struct mk_h2_session_stream *s, struct mk_h2_response_head *h, bool ends)
{
    if (!mk_h2_response_head_finish(h))
        return h->problem;
    if (h->is_trailers && !ends)
        return "the trailers of the response do not end it";
    if (h->is_trailers && s->is_tunnel)
        return "the server sent trailers into a tunnel";
    if (!h->is_trailers && h->status < 200 && ends)
        return "an interim response ends the stream";
    return s->n_interim > MK_RESPONSE_PARSER_1XX_MAX ? "too many interim responses" : NULL;
}

static void deliver_head(struct mk_h2_session_stream *s, struct mk_h2_response_head *h, bool ends)
{
    if (!h->is_trailers && h->status < 200)
        s->n_interim++;
    const char *problem =
        s->is_remote_closed ? "the server sent a head after the end of its response" : check_head(s, h, ends);
    if (problem) {
        mk_h2_session_stream_reset(s, MK_H2_PROTOCOL_ERROR, -EPROTO, problem);
        return;
    }
    unsigned flags = (ends ? MK_H2_END_STREAM : 0) | (h->is_trailers ? MK_H2_SESSION_STREAM_TRAILERS : 0);
    mk_h2_session_stream_receive(s, MK_H2_HEADERS, flags, mk_buf_str(&h->text));
    s->has_head |= h->status >= 200;
    s->is_tunnel |= s->is_connect && h->status >= 200 && h->status < 300;
}

static void receive_block(struct mk_h2_session *ss, uint32_t id, mk_str block, bool ends)
{
    struct mk_h2_session_stream *s = mk_h2_session_stream_find(ss, id);
    struct mk_h2_response_head head;
    if (!s && is_idle_stream(ss, id)) {
        fail_protocol(ss, "the server responded to a request that was not sent");
        return;
    }
    if (!s || s->error) {
        if (decode_block(ss, block, ignore_header, NULL))
            (void)count_useless_frame(ss);
        return;
    }
    mk_h2_response_head_init(&head, ss->scratch + MK_H2_SESSION_INPUT_MAX, MK_RESPONSE_PARSER_HEAD_MAX,
                             s->has_head, s->is_connect);
    if (decode_block(ss, block, mk_h2_response_head_on_header, &head))
        deliver_head(s, &head, ends);
}

static void begin_block(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str piece)
{
    ss->block = mk_buf_growing(MK_H2_SESSION_BLOCK_MAX);
    ss->block_stream = f->stream;
    ss->block_flags = f->flags;
    ss->block_frames = 1;
    mk_buf_add(&ss->block, piece);
}

static void end_block(struct mk_h2_session *ss)
{
    struct mk_buf block = ss->block;
    uint32_t id = ss->block_stream;
    ss->block = (struct mk_buf){0};
    ss->block_stream = 0;
    receive_block(ss, id, mk_buf_str(&block), ss->block_flags & MK_H2_END_STREAM);
    mk_buf_free(&block);
}

static void on_headers(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    if (!mk_h2_frame_unpad(f, &payload))
        fail_protocol(ss, "the server sent an invalid HEADERS frame");
    else if (f->flags & MK_H2_END_HEADERS)
        receive_block(ss, f->stream, payload, f->flags & MK_H2_END_STREAM);
    else
        begin_block(ss, f, payload);
}

static void on_continuation(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    if (f->stream != ss->block_stream) {
        fail_protocol(ss, "the server sent an unexpected CONTINUATION frame");
        return;
    }
    mk_buf_add(&ss->block, payload);
    if (ss->block.failed || ++ss->block_frames > FRAMES_OF_BLOCK_MAX)
        mk_h2_session_write_goaway(ss, MK_H2_ENHANCE_YOUR_CALM, "the response head is too long");
    else if (f->flags & MK_H2_END_HEADERS)
        end_block(ss);
}

/* ---- Windows and settings ---- */

static bool grow_stream_window(struct mk_h2_session_stream *s, int64_t by)
{
    s->send_window += by;
    return s->send_window <= MK_H2_WINDOW_MAX;
}

static void on_window_update(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    uint32_t by = mk_h2_frame_read_u32(payload) & MK_H2_WINDOW_MAX;
    struct mk_h2_session_stream *s = f->stream ? mk_h2_session_stream_find(ss, f->stream) : NULL;
    if (by < TINY_WINDOW && !count_useless_frame(ss))
        return;
    if (f->stream && !s && is_idle_stream(ss, f->stream)) {
        fail_protocol(ss, "the server sent a WINDOW_UPDATE for an unknown stream");
    } else if (!f->stream) {
        ss->send_window += by;
        if (!by || ss->send_window > MK_H2_WINDOW_MAX)
            mk_h2_session_write_goaway(ss, by ? MK_H2_FLOW_CONTROL_ERROR : MK_H2_PROTOCOL_ERROR,
                                       "the server sent an invalid WINDOW_UPDATE");
    } else if (s && !s->error && (!by || !grow_stream_window(s, by))) {
        mk_h2_session_stream_reset(s, by ? MK_H2_FLOW_CONTROL_ERROR : MK_H2_PROTOCOL_ERROR, -EPROTO,
                                   "the server sent an invalid WINDOW_UPDATE");
    }
    mk_h2_session_stream_wake_blocked(ss);
}

static bool apply_initial_window(struct mk_h2_session *ss, uint32_t size)
{
    int64_t by = (int64_t)size - ss->stream_window;
    if (size > MK_H2_WINDOW_MAX)
        return false;
    ss->stream_window = size;
    for (unsigned i = 0; i < MK_H2_SESSION_BUCKETS; i++)
        for (struct mk_h2_session_stream *s = ss->buckets[i]; s; s = s->next)
            if (!grow_stream_window(s, by))
                return false;
    mk_h2_session_stream_wake_blocked(ss);
    return true;
}

static bool apply_setting(struct mk_h2_session *ss, unsigned id, uint32_t value)
{
    switch (id) {
    case MK_H2_HEADER_TABLE_SIZE:
        ss->owes_table_size |= value < ss->table_max;
        ss->table_max = value;
        return true;
    case MK_H2_ENABLE_PUSH:
        return value == 0; /* a server must not announce another value */
    case MK_H2_MAX_CONCURRENT_STREAMS:
        ss->streams_max = (uint32_t)mk_min(value, MK_H2_SESSION_STREAMS_MAX);
        return true;
    case MK_H2_INITIAL_WINDOW_SIZE:
        return apply_initial_window(ss, value);
    case MK_H2_MAX_FRAME_SIZE: /* larger frames would delay other streams */
        return value >= MK_H2_FRAME_MAX && value <= 0xffffff;
    case MK_H2_ENABLE_CONNECT_PROTOCOL:
        ss->has_connect_protocol = value == 1;
        return value <= 1;
    default:
        return true;
    }
}

/* The first SETTINGS open the session: the server speaks HTTP/2, and its limits are known. Streams above the
 * limit go to other sessions. */
static void open_session(struct mk_h2_session *ss)
{
    unsigned n = 0;
    mk_timer_stop(&ss->timer);
    mk_h2_session_write_move(ss, MK_H2_SESSION_OPEN);
    ss->backend->http2_streams_max = ss->streams_max;
    MK_LIST_EACH_SAFE (at, &ss->streams) {
        struct mk_h2_session_stream *s = MK_LIST_ENTRY(at, struct mk_h2_session_stream, link);
        mk_upstream_conn_move(s->conn, MK_UPSTREAM_CONN_OPEN);
        mk_h2_session_stream_notify(s, MK_WRITABLE);
        mk_h2_session_stream_check_tunnel(s);
        if (n++ < ss->streams_max)
            continue;
        s->conn->is_unprocessed = true;
        mk_h2_session_stream_fail(s, -ESTALE, "the server allows no further stream");
    }
}

static void on_settings(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    unsigned id;
    uint32_t value;
    bool is_first = ss->state.current == MK_H2_SESSION_CONNECTING;
    if (is_first)
        ss->streams_max = MK_H2_SESSION_STREAMS_MAX;
    if (f->flags & MK_H2_ACK || (!is_first && !count_useless_frame(ss)))
        return;
    while (mk_h2_frame_next_setting(&payload, &id, &value))
        if (!apply_setting(ss, id, value)) {
            fail_protocol(ss, "the server sent an invalid SETTINGS frame");
            return;
        }
    mk_h2_frame_emit_head(mk_h2_session_write_buffer(ss), 0, MK_H2_SETTINGS, MK_H2_ACK, 0);
    if (is_first && !ss->streams_max)
        fail_protocol(ss, "the server allows no HTTP/2 streams");
    else if (is_first)
        open_session(ss);
}

/* ---- Control frames ---- */

static void on_ping(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    if (!(f->flags & MK_H2_ACK)) {
        if (count_useless_frame(ss))
            mk_h2_frame_emit_ping(mk_h2_session_write_buffer(ss), true, payload);
        return;
    }
    if (!ss->is_ping_sent)
        (void)count_useless_frame(ss);
    ss->is_ping_sent = false;
}

/* A refused stream was not processed, so that any request can be sent again. A stream that ends without an
 * error after a complete response needs no further notice: the server does not want the rest of the
 * request. */
static void on_reset(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_h2_session_stream *s = mk_h2_session_stream_find(ss, f->stream);
    uint32_t code = mk_h2_frame_read_u32(payload);
    if (!s && is_idle_stream(ss, f->stream))
        fail_protocol(ss, "the server reset an unknown stream");
    else if (!s || s->error)
        (void)count_useless_frame(ss);
    else if (s->is_remote_closed)
        s->is_reset = true;
    else {
        s->is_reset = true;
        s->conn->is_unprocessed = code == MK_H2_REFUSED_STREAM && !s->has_head;
        s->conn->reset_code = code;
        mk_h2_session_stream_fail(s, s->conn->is_unprocessed ? -ESTALE : -EPROTO,
                                  s->conn->is_unprocessed ? "the server refused the request"
                                                          : "the server reset the stream");
    }
}

/* Streams above the last one that the server will process can be sent again. */
static void on_goaway(struct mk_h2_session *ss, mk_str payload)
{
    uint32_t last = mk_h2_frame_read_u32(payload) & MK_H2_STREAM_MAX;
    if (ss->state.current == MK_H2_SESSION_OPEN)
        mk_h2_session_write_move(ss, MK_H2_SESSION_DRAINING);
    else if (!count_useless_frame(ss))
        return;
    MK_LIST_EACH_SAFE (at, &ss->streams) {
        struct mk_h2_session_stream *s = MK_LIST_ENTRY(at, struct mk_h2_session_stream, link);
        if ((s->id && s->id <= last) || s->error || s->is_remote_closed)
            continue;
        s->is_reset = s->conn->is_unprocessed = true;
        mk_h2_session_stream_fail(s, -ESTALE, "the server closed the session");
    }
    mk_h2_session_write_schedule(ss); /* the session may be over */
}

/* ---- All frames ---- */

static void dispatch_frame(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str payload)
{
    switch (f->type) {
    case MK_H2_DATA:
        on_data(ss, f, payload);
        break;
    case MK_H2_HEADERS:
        on_headers(ss, f, payload);
        break;
    case MK_H2_RST_STREAM:
        on_reset(ss, f, payload);
        break;
    case MK_H2_SETTINGS:
        on_settings(ss, f, payload);
        break;
    case MK_H2_PING:
        on_ping(ss, f, payload);
        break;
    case MK_H2_GOAWAY:
        on_goaway(ss, payload);
        break;
    case MK_H2_WINDOW_UPDATE:
        on_window_update(ss, f, payload);
        break;
    case MK_H2_CONTINUATION:
        on_continuation(ss, f, payload);
        break;
    default: /* PRIORITY and unknown types */
        (void)count_useless_frame(ss);
        break;
    }
}

/* Is the frame valid and allowed now? `text`: the received bytes, for the message. */
static bool check_frame(struct mk_h2_session *ss, const struct mk_h2_frame *f, mk_str text)
{
    bool is_first = ss->state.current == MK_H2_SESSION_CONNECTING;
    if (is_first && (f->type != MK_H2_SETTINGS || f->flags & MK_H2_ACK)) {
        fail_protocol(ss, mk_str_starts(text, MK_STR("HTTP/1.")) ? "the server speaks HTTP/1, not HTTP/2"
                                                                 : "the server does not speak HTTP/2");
        return false;
    }
    enum mk_h2_error error = mk_h2_frame_check(f);
    bool is_in_place = ss->block_stream ? f->type == MK_H2_CONTINUATION : f->type != MK_H2_CONTINUATION;
    if (!error && is_in_place)
        return true;
    mk_h2_session_write_goaway(ss, error ? error : MK_H2_PROTOCOL_ERROR,
                               "the server sent an invalid HTTP/2 frame");
    return false;
}

size_t mk_h2_session_input_parse(struct mk_h2_session *ss, mk_str bytes)
{
    size_t at = 0;
    while (is_alive(ss) && bytes.len - at >= MK_H2_FRAME_HEAD) {
        mk_str rest = mk_str_skip(bytes, at);
        struct mk_h2_frame f = mk_h2_frame_parse(rest);
        if (!check_frame(ss, &f, rest))
            break;
        if (rest.len < MK_H2_FRAME_HEAD + (size_t)f.length)
            break;
        dispatch_frame(ss, &f, mk_str_of(rest.p + MK_H2_FRAME_HEAD, f.length));
        at += MK_H2_FRAME_HEAD + f.length;
    }
    return at;
}

/* Keeps the bytes of an incomplete frame. */
static void keep_rest(struct mk_h2_session *ss, mk_str rest)
{
    mk_buf_clear(&ss->in);
    if (rest.len)
        mk_buf_add(&ss->in, rest);
    else
        mk_buf_free(&ss->in);
    if (ss->in.failed)
        mk_h2_session_write_fail(ss, -ENOMEM, "no memory for the response");
    if (!rest.len)
        ss->in = mk_buf_growing(MK_H2_SESSION_INPUT_MAX);
}

static void end_input(struct mk_h2_session *ss, ssize_t n)
{
    mk_h2_session_write_fail(ss, n ? (int)n : -ECONNRESET,
                             n ? "the connection to the server broke" : "the server closed the connection");
}

bool mk_h2_session_input_read(struct mk_h2_session *ss)
{
    char *buf = ss->scratch;
    for (unsigned i = 0; is_alive(ss) && mk_upstream_conn_is_readable(&ss->conn); i++) {
        if (i == READS_MAX)
            return true;
        if (mk_h2_session_write_unsent(ss) > MK_H2_SESSION_UNSENT_MAX)
            return false;
        size_t had = ss->in.len;
        ssize_t n = mk_upstream_conn_read(&ss->conn, buf + had, MK_H2_SESSION_INPUT_MAX - had);
        if (n == -EAGAIN)
            return false;
        if (n <= 0) {
            end_input(ss, n);
            return false;
        }
        if (had)
            memcpy(buf, ss->in.p, had);
        ss->is_suspect = false;
        size_t used = mk_h2_session_input_parse(ss, mk_str_of(buf, had + (size_t)n));
        keep_rest(ss, mk_str_of(buf + used, had + (size_t)n - used));
    }
    return false;
}
