/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_input.h"

#include "http2/h2_abuse.h"
#include "http2/h2_request.h"
#include "http2/h2_stream.h"
#include "http2/h2_write.h"

enum {
    FRAMES_OF_BLOCK_MAX = 32, /* maximum frames of a header block: no well-behaved client sends more */
    /* No input is read while more output than this is unsent: a full output buffer of body data, and small
     * frames. */
    UNSENT_MAX = 128 * 1024,
};

static void fail_with_protocol_error(struct mk_h2 *h2)
{
    mk_h2_write_goaway_error(h2, MK_H2_PROTOCOL_ERROR, MK_H2_BAD_PROTOCOL);
}

/* Handles a stream error, and charges it to the abuse budget: a client could cause many errors on purpose to
 * keep the server busy. */
static void reset_stream_with_error(struct mk_h2 *h2, struct mk_h2_stream *s, uint32_t id,
                                    enum mk_h2_error error)
{
    if (!mk_h2_abuse_charge(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
        return;
    if (s)
        mk_h2_stream_reset(s, error, MK_OUTCOME_REJECTED);
    else
        mk_h2_write_rst_stream(h2, id, error);
}

static bool is_idle_stream(const struct mk_h2 *h2, uint32_t stream)
{
    return stream > h2->last_stream || stream % 2 == 0;
}

/* ---- Body ---- */

static bool charge_recv_window(struct mk_h2 *h2, uint32_t length)
{
    h2->receive_window -= length;
    if (h2->receive_window >= 0)
        return true;
    mk_h2_write_goaway_error(h2, MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW);
    return false;
}

static void deliver_data(struct mk_h2 *h2, struct mk_h2_stream *s, const struct mk_h2_frame *f, mk_str data)
{
    bool ends = f->flags & MK_H2_END_STREAM;
    s->receive_window -= f->length;
    if (mk_http_stream_request_received(&s->d))
        reset_stream_with_error(h2, s, s->id, MK_H2_STREAM_CLOSED);
    else if (f->length &&
             s->receive_window + h2->early < 0) /* RFC 9113, section 6.9.1: an empty frame is allowed */
        reset_stream_with_error(h2, s, s->id, MK_H2_FLOW_CONTROL_ERROR);
    else if (data.len || ends || mk_h2_abuse_charge(h2, 1, MK_H2_MANY_EMPTY))
        mk_h2_stream_receive(s, data, ends);
}

static void on_data(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_h2_stream *s = mk_h2_stream_find(h2, f->stream);
    if (!charge_recv_window(h2, f->length))
        return;
    if (!mk_h2_frame_unpad(f, &payload) || (!s && is_idle_stream(h2, f->stream)))
        fail_with_protocol_error(h2);
    else if (s)
        deliver_data(h2, s, f, payload);
    else if (!mk_h2_stream_is_late(h2, f->stream) && !mk_h2_stream_was_reset(h2, f->stream))
        reset_stream_with_error(h2, NULL, f->stream, MK_H2_STREAM_CLOSED);
}

/* ---- Heads ---- */

static bool depends_on_itself(const struct mk_h2_frame *f, mk_str payload)
{
    bool is_head = f->type == MK_H2_HEADERS; /* PRIORITY has neither of these flags */
    size_t at = is_head && f->flags & MK_H2_PADDED ? 1 : 0;
    if (is_head && !(f->flags & MK_H2_WITH_PRIORITY))
        return false;
    return payload.len >= at + 4 &&
           (mk_h2_frame_read_u32(mk_str_skip(payload, at)) & MK_H2_STREAM_MAX) == f->stream;
}

static void begin_header_block(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str piece)
{
    h2->block = mk_buf_growing(h2->conn->manager->limits->head.head_max + MK_H2_FRAME_MAX);
    h2->block_stream = f->stream;
    h2->block_flags = f->flags;
    h2->block_frames = 1;
    mk_buf_add(&h2->block, piece);
    if (h2->block.failed)
        mk_h2_write_goaway_error(h2, MK_H2_INTERNAL_ERROR, MK_H2_NO_MEMORY);
}

static void end_header_block(struct mk_h2 *h2)
{
    struct mk_buf block = h2->block;
    uint32_t stream = h2->block_stream;
    h2->block = (struct mk_buf){0};
    h2->block_stream = 0;
    mk_h2_request_receive_block(h2, stream, mk_buf_str(&block), h2->block_flags & MK_H2_END_STREAM);
    mk_buf_free(&block);
}

static void on_headers(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    bool itself = depends_on_itself(f, payload);
    if (f->stream % 2 == 0 || !mk_h2_frame_unpad(f, &payload) || itself)
        fail_with_protocol_error(h2);
    else if (f->flags & MK_H2_END_HEADERS)
        mk_h2_request_receive_block(h2, f->stream, payload, f->flags & MK_H2_END_STREAM);
    else
        begin_header_block(h2, f, payload);
}

static void on_continuation(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    if (f->stream != h2->block_stream) {
        fail_with_protocol_error(h2);
        return;
    }
    mk_buf_add(&h2->block, payload);
    if (h2->block.failed || ++h2->block_frames > FRAMES_OF_BLOCK_MAX)
        mk_h2_write_goaway_error(h2, MK_H2_ENHANCE_YOUR_CALM, MK_H2_LONG_HEAD);
    else if (f->flags & MK_H2_END_HEADERS)
        end_header_block(h2);
}

/* ---- Windows ---- */

/* Has the server begun to send the response, but not finished it? */
static bool is_response_in_progress(const struct mk_h2_stream *s)
{
    return s->d.reply.current != MK_RESPONSE_PENDING && !mk_http_stream_response_written(&s->d);
}

static void grow_send_window(struct mk_h2 *h2, struct mk_h2_stream *s, uint32_t id, uint32_t by)
{
    int64_t *window = s ? &s->send_window : &h2->send_window;
    if (*window + by > MK_H2_WINDOW_MAX) {
        if (s)
            reset_stream_with_error(h2, s, id, MK_H2_FLOW_CONTROL_ERROR);
        else
            mk_h2_write_goaway_error(h2, MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW);
        return;
    }
    bool opens = *window <= 0 && *window + by > 0;
    *window += by;
    if (s && opens && is_response_in_progress(s))
        mk_h2_stream_queue_output(s);
}

static void on_window_update(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    enum { TINY = 256 };
    struct mk_h2_stream *s = f->stream ? mk_h2_stream_find(h2, f->stream) : NULL;
    uint32_t by = mk_h2_frame_read_u32(payload) & MK_H2_WINDOW_MAX;
    if (by < TINY && !mk_h2_abuse_charge(h2, 1, MK_H2_TINY_WINDOWS))
        return;
    if (f->stream && !s && is_idle_stream(h2, f->stream))
        fail_with_protocol_error(h2);
    else if (!by && f->stream)
        reset_stream_with_error(h2, s, f->stream, MK_H2_PROTOCOL_ERROR);
    else if (!by)
        fail_with_protocol_error(h2);
    else if (s || !f->stream) /* otherwise the stream has ended */
        grow_send_window(h2, s, f->stream, by);
}

/* Applies a new initial window size, which also changes the windows of open streams (RFC 9113, section
 * 6.9.2). */
static bool apply_initial_window(struct mk_h2 *h2, uint32_t size)
{
    int64_t by = (int64_t)size - h2->stream_window;
    if (size > MK_H2_WINDOW_MAX)
        return false;
    h2->stream_window = (int32_t)size;
    for (unsigned i = 0; i < MK_H2_BUCKETS; i++)
        for (struct mk_h2_stream *s = h2->buckets[i]; s; s = s->next) {
            bool opens = s->send_window <= 0 && s->send_window + by > 0;
            s->send_window += by;
            if (s->send_window > MK_H2_WINDOW_MAX)
                return false;
            if (opens && is_response_in_progress(s))
                mk_h2_stream_queue_output(s);
        }
    return true;
}

/* ---- Control frames ---- */

static bool apply_setting(struct mk_h2 *h2, unsigned id, uint32_t value)
{
    bool fine = true;
    switch (id) {
    case MK_H2_ENABLE_PUSH:
    case MK_H2_NO_RFC7540_PRIORITIES:
        fine = value <= 1;
        break;
    case MK_H2_MAX_FRAME_SIZE:
        fine = value >= MK_H2_FRAME_MAX && value <= 0xffffff;
        break;
    case MK_H2_HEADER_TABLE_SIZE:
        h2->owes_table_size |= value < h2->table_max;
        h2->table_max = value;
        break;
    case MK_H2_INITIAL_WINDOW_SIZE:
        if (apply_initial_window(h2, value))
            break;
        mk_h2_write_goaway_error(h2, MK_H2_FLOW_CONTROL_ERROR, MK_H2_BAD_FLOW);
        return false;
    default: /* limits on streams that we open (none), and unknown settings */
        break;
    }
    if (!fine)
        fail_with_protocol_error(h2);
    return fine;
}

static void on_settings(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    unsigned id;
    uint32_t value;
    bool first = h2->remote.current == MK_H2_REMOTE_SETTINGS;
    if (!first && !mk_h2_abuse_charge(h2, 1 + f->length / 60, MK_H2_MANY_SETTINGS))
        return;
    if (f->flags & MK_H2_ACK) {
        h2->early = 0;
        return;
    }
    while (mk_h2_frame_next_setting(&payload, &id, &value))
        if (!apply_setting(h2, id, value))
            return;
    if (first)
        mk_h2_state_move_remote(h2, MK_H2_REMOTE_OPEN);
    mk_h2_frame_emit_head(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD), 0, MK_H2_SETTINGS, MK_H2_ACK, 0);
}

static void on_ping(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    if (!mk_h2_abuse_charge(h2, 1, MK_H2_MANY_PINGS))
        return;
    if (f->flags & MK_H2_ACK)
        mk_h2_write_goaway_after_ping(h2);
    else
        mk_h2_frame_emit_ping(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 8), true, payload);
}

static void on_reset(struct mk_h2 *h2, const struct mk_h2_frame *f)
{
    struct mk_h2_stream *s = mk_h2_stream_find(h2, f->stream);
    mk_h2_stream_forget_reset(h2, f->stream);
    if (mk_h2_stream_is_late(h2, f->stream))
        return;
    if (!s && is_idle_stream(h2, f->stream))
        fail_with_protocol_error(h2);
    else if (mk_h2_abuse_charge(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS) && s)
        mk_h2_stream_close(s, MK_OUTCOME_CLIENT_ABORTED);
}

static void reprioritize_stream(struct mk_h2_stream *s, struct mk_h2_priority priority)
{
    bool queued = !mk_list_empty(&s->queue_link);
    s->priority = priority;
    if (!queued || s->d.x->step != MK_DISPATCH_READY || mk_http_stream_is_tunnel(&s->d) || s->due)
        return; /* the stream is not waiting to send */
    mk_list_remove(&s->queue_link);
    mk_h2_stream_queue_output(s);
}

static void on_priority_update(struct mk_h2 *h2, mk_str payload)
{
    uint32_t id = mk_h2_frame_read_u32(payload) & MK_H2_STREAM_MAX;
    struct mk_h2_stream *s = mk_h2_stream_find(h2, id);
    if (id % 2 == 0)
        fail_with_protocol_error(h2);
    else if (mk_h2_abuse_charge(h2, 1, MK_H2_MANY_OTHERS) && s)
        reprioritize_stream(s, mk_h2_priority_parse(mk_str_skip(payload, 4)));
}

/* ---- All frames ---- */

static void dispatch_frame(struct mk_h2 *h2, const struct mk_h2_frame *f, mk_str payload)
{
    switch (f->type) {
    case MK_H2_DATA:
        on_data(h2, f, payload);
        break;
    case MK_H2_HEADERS:
        on_headers(h2, f, payload);
        break;
    case MK_H2_PRIORITY:
        if (depends_on_itself(f, payload))
            fail_with_protocol_error(h2);
        else
            (void)mk_h2_abuse_charge(h2, 1, MK_H2_MANY_OTHERS);
        break;
    case MK_H2_RST_STREAM:
        on_reset(h2, f);
        break;
    case MK_H2_SETTINGS:
        on_settings(h2, f, payload);
        break;
    case MK_H2_PING:
        on_ping(h2, f, payload);
        break;
    case MK_H2_GOAWAY: /* the connection closes when its open streams have ended */
        if (h2->remote.current == MK_H2_REMOTE_OPEN)
            mk_h2_state_move_remote(h2, MK_H2_REMOTE_GOAWAY);
        break;
    case MK_H2_WINDOW_UPDATE:
        on_window_update(h2, f, payload);
        break;
    case MK_H2_CONTINUATION:
        on_continuation(h2, f, payload);
        break;
    case MK_H2_PRIORITY_UPDATE:
        on_priority_update(h2, payload);
        break;
    default:
        (void)mk_h2_abuse_charge(h2, 1, MK_H2_MANY_OTHERS);
        break;
    }
}

/* Is this frame valid and allowed now? */
static bool check_frame(struct mk_h2 *h2, const struct mk_h2_frame *f)
{
    enum mk_h2_error error = mk_h2_frame_check(f);
    bool in_place = h2->block_stream ? f->type == MK_H2_CONTINUATION : f->type != MK_H2_CONTINUATION;
    bool first = h2->remote.current == MK_H2_REMOTE_SETTINGS;
    if (first && (f->type != MK_H2_SETTINGS || f->flags & MK_H2_ACK))
        in_place = false;
    if (!error && in_place)
        return true;
    if (error == MK_H2_FRAME_SIZE_ERROR)
        mk_h2_write_goaway_error(h2, error, MK_H2_BAD_FRAME_SIZE);
    else
        fail_with_protocol_error(h2);
    return false;
}

/* Handles the next frame. False: it is incomplete. */
static bool handle_frame(struct mk_h2 *h2)
{
    mk_str in = mk_conn_input(h2->conn);
    if (in.len < MK_H2_FRAME_HEAD)
        return false;
    struct mk_h2_frame f = mk_h2_frame_parse(in);
    if (!check_frame(h2, &f))
        return true;
    if (in.len < MK_H2_FRAME_HEAD + (size_t)f.length)
        return false;
    dispatch_frame(h2, &f, mk_str_of(in.p + MK_H2_FRAME_HEAD, f.length));
    mk_conn_consume_input(h2->conn, MK_H2_FRAME_HEAD + f.length);
    if (f.type != MK_H2_DATA && f.type != MK_H2_HEADERS && f.type != MK_H2_CONTINUATION)
        h2->conn->progress -= MK_H2_FRAME_HEAD + f.length; /* control frames do not count as progress */
    return true;
}

static bool check_preface(struct mk_h2 *h2)
{
    mk_str in = mk_conn_input(h2->conn), preface = MK_H2_PREFACE;
    size_t n = mk_min(in.len, preface.len);
    if (!mk_str_eq(mk_str_first(in, n), mk_str_first(preface, n))) {
        fail_with_protocol_error(h2);
        return true;
    }
    if (n < preface.len)
        return false;
    mk_conn_consume_input(h2->conn, n);
    mk_h2_state_move_remote(h2, MK_H2_REMOTE_SETTINGS);
    return true;
}

MK_COLD static void on_input_end(struct mk_h2 *h2, ssize_t n)
{
    mk_h2_state_move_remote(h2, MK_H2_REMOTE_CLOSED);
    h2->block_stream = 0; /* an incomplete block can no longer be completed */
    mk_conn_consume_input(h2->conn, mk_conn_input(h2->conn).len);
    if (n < 0)
        mk_h2_state_move_local(h2, MK_H2_LOCAL_LOST);
    else
        mk_h2_stream_end_input(h2);
}

/* Is so much output pending that more requests would only add responses that cannot be sent? */
static bool has_too_much_unsent(const struct mk_h2 *h2)
{
    return mk_send_queue_len(&h2->conn->out) > UNSENT_MAX;
}

void mk_h2_input_read(struct mk_h2 *h2)
{
    while (mk_h2_state_is_alive(h2) && h2->remote.current != MK_H2_REMOTE_CLOSED &&
           !has_too_much_unsent(h2)) {
        bool preface = h2->remote.current == MK_H2_REMOTE_PREFACE;
        if (preface ? check_preface(h2) : handle_frame(h2)) {
            mk_h2_stream_free_closed(h2);
            continue;
        }
        ssize_t n = mk_conn_fill_input(h2->conn);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            on_input_end(h2, n);
    }
}
