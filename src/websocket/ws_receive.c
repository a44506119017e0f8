/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_receive.h"

#include <errno.h>
#include <monkey/mem.h>

#include "http/utf8.h"
#include "http/ws_frame_head.h"
#include "websocket/ws_close.h"
#include "websocket/ws_send.h"

enum {
    ROOM = 16 * 1024,
    READS_MAX = 64, /* maximum reads in a loop iteration before other connections are served */
    INFLATE_MAX =
        2 * 1024 * 1024, /* bytes per iteration for all sockets; the message that exceeds this limit is the
                            last */
};

/* Receive state of a partial message and its frames. Kept between reads only within a message. */
struct mk_ws_receive_state {
    struct mk_ws_frame_head frame;
    uint64_t at; /* payload bytes consumed */
    bool is_in_frame;
    bool is_compressed; /* the message is compressed */
    uint8_t kind;       /* opcode of the message; 0: none in progress */
    uint8_t n_head, n_control;
    uint8_t head[MK_WS_HEAD_MAX];
    char control[MK_WS_CONTROL_MAX];
    struct mk_utf8 utf8;
    struct mk_buf message;
    char *rest; /* data that was read but not consumed, because the socket is paused or its queue is full */
    size_t rest_at, rest_len;
};

static bool is_between_messages(const struct mk_ws_receive_state *in)
{
    return !in->is_in_frame && !in->n_head && !in->kind && !in->rest;
}

static bool may_read_frames(const struct mk_websocket *s)
{
    return s->state.current == MK_WS_OPEN || s->state.current == MK_WS_CLOSING;
}

/* Must compressed data wait for the next loop iteration? */
static bool inflate_budget_is_spent(struct mk_websocket *s)
{
    if (!s->is_compressed || s->worker->inflated < INFLATE_MAX)
        return false;
    mk_ws_resume_later(s);
    return true;
}

/* May the next frame be processed? */
static bool may_process_frame(struct mk_websocket *s)
{
    if (inflate_budget_is_spent(s))
        return false;
    if (s->state.current != MK_WS_OPEN)
        return may_read_frames(s);
    if (!mk_ws_send_has_room(s))
        s->is_stalled = true;
    return !s->is_paused && !s->is_stalled;
}

/* ---- Messages ---- */

static void deliver_message(struct mk_websocket *s, unsigned kind, mk_str data)
{
    const struct mk_websocket_ops *ops = s->options->ops;
    if (s->state.current == MK_WS_OPEN && ops->on_message)
        ops->on_message(s->ctx, s, (enum mk_websocket_kind)kind, data);
}

/* Inflates a message even if it is dropped, because later messages may refer to it. */
static void deliver_compressed_message(struct mk_websocket *s, unsigned kind, mk_str code)
{
    bool keeps = s->offer.client_keeps;
    struct mk_ws_deflate *c = keeps ? s->coder : mk_ws_shared_deflate(s->worker, MK_WS_EXTENSION_BITS_MAX);
    struct mk_buf data = mk_buf_growing(mk_ws_message_max(s));
    int e = c ? mk_ws_deflate_decompress(c, code, keeps, &data, &s->worker->inflated) : -ENOMEM;
    s->is_coding = true;
    mk_deferred_post(s->worker->iteration_end); /* the deferred callback resets the counter */
    if (e)
        mk_ws_close_with_error(s, e == -EMSGSIZE ? MK_WEBSOCKET_TOO_BIG
                                  : e == -ENOMEM ? MK_WEBSOCKET_INTERNAL_ERROR
                                                 : MK_WEBSOCKET_BAD_DATA);
    else if (kind == MK_WS_TEXT && !mk_utf8_is_valid(mk_buf_str(&data)))
        mk_ws_close_with_error(s, MK_WEBSOCKET_BAD_DATA);
    else
        deliver_message(s, kind, mk_buf_str(&data));
    mk_buf_free(&data);
}

static void finish_message(struct mk_websocket *s, struct mk_ws_receive_state *in, mk_str data)
{
    if (in->is_compressed)
        deliver_compressed_message(s, in->kind, data);
    else if (in->kind == MK_WS_TEXT && !mk_utf8_is_complete(&in->utf8))
        mk_ws_close_with_error(s, MK_WEBSOCKET_BAD_DATA);
    else
        deliver_message(s, in->kind, data);
    mk_buf_free(&in->message);
    in->kind = 0;
}

/* Appends a piece of a data frame; `is_last`: it is the last piece of the frame. */
static void append_data(struct mk_websocket *s, struct mk_ws_receive_state *in, mk_str piece, bool is_last)
{
    bool ends = is_last && in->frame.is_final;
    if (in->kind == MK_WS_TEXT && !in->is_compressed && !mk_utf8_feed(&in->utf8, piece)) {
        mk_ws_close_with_error(s, MK_WEBSOCKET_BAD_DATA);
        return;
    }
    if (ends && in->message.len == 0) { /* delivered from the read buffer */
        finish_message(s, in, piece);
        return;
    }
    mk_buf_add(&in->message, piece);
    if (in->message.failed)
        mk_ws_close_with_error(s, MK_WEBSOCKET_INTERNAL_ERROR);
    else if (ends)
        finish_message(s, in, mk_buf_str(&in->message));
}

/* ---- Frames ---- */

static void handle_control_frame(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    const struct mk_websocket_ops *ops = s->options->ops;
    mk_str payload = mk_str_of(in->control, in->n_control);
    switch (in->frame.opcode) {
    case MK_WS_CLOSE:
        mk_ws_close_on_frame(s, payload);
        break;
    case MK_WS_PING:
        if (s->state.current == MK_WS_OPEN && !mk_ws_send_control(s, MK_WS_PONG, payload))
            mk_ws_close_with_error(s, MK_WEBSOCKET_INTERNAL_ERROR);
        break;
    default:
        if (payload.len && s->state.current == MK_WS_OPEN && ops->on_pong)
            ops->on_pong(s->ctx, s, payload);
        break;
    }
}

/* Returns the close code to reject a data frame with, or 0. */
static unsigned check_data_frame(const struct mk_websocket *s, const struct mk_ws_receive_state *in)
{
    const struct mk_ws_frame_head *f = &in->frame;
    bool continues = f->opcode == MK_WS_CONTINUATION;
    if (continues != (in->kind != 0) || (f->is_compressed && (continues || !s->is_compressed)))
        return MK_WEBSOCKET_PROTOCOL_ERROR;
    size_t max = mk_ws_message_max(s);
    if (f->len > mk_ws_frame_max(s) || f->len > max || in->message.len > max - f->len)
        return MK_WEBSOCKET_TOO_BIG;
    return 0;
}

static unsigned check_frame(const struct mk_websocket *s, const struct mk_ws_receive_state *in)
{
    if (!in->frame.is_masked)
        return MK_WEBSOCKET_PROTOCOL_ERROR;
    if (mk_ws_frame_is_control(in->frame.opcode))
        return in->frame.is_compressed ? MK_WEBSOCKET_PROTOCOL_ERROR : 0;
    return check_data_frame(s, in);
}

static void start_message(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    in->kind = in->frame.opcode;
    in->is_compressed = in->frame.is_compressed;
    in->utf8 = (struct mk_utf8){0, 0, 0};
    in->message = mk_buf_growing(mk_ws_message_max(s));
}

static void finish_frame(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    in->is_in_frame = false;
    if (mk_ws_frame_is_control(in->frame.opcode))
        handle_control_frame(s, in);
}

static void start_frame(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    const char *problem = mk_ws_frame_head_parse(&in->frame, in->head);
    unsigned code = problem ? MK_WEBSOCKET_PROTOCOL_ERROR : check_frame(s, in);
    in->n_head = 0;
    in->n_control = 0;
    in->at = 0;
    if (code) {
        mk_ws_close_with_error(s, code);
        return;
    }
    bool is_control = mk_ws_frame_is_control(in->frame.opcode);
    if (!is_control && in->frame.opcode != MK_WS_CONTINUATION)
        start_message(s, in);
    in->is_in_frame = true;
    if (in->frame.len)
        return;
    if (!is_control)
        append_data(s, in, MK_STR(""), true);
    finish_frame(s, in);
}

static size_t parse_frame_head(struct mk_websocket *s, struct mk_ws_receive_state *in, const char *p,
                               size_t len)
{
    size_t n = 0;
    for (;;) {
        size_t need = in->n_head < MK_WS_HEAD_MIN ? MK_WS_HEAD_MIN : mk_ws_frame_head_len(in->head);
        if (in->n_head == need) {
            start_frame(s, in);
            return n;
        }
        size_t more = mk_min(need - in->n_head, len - n);
        if (!more)
            return n;
        memcpy(in->head + in->n_head, p + n, more);
        in->n_head = (uint8_t)(in->n_head + more);
        n += more;
    }
}

static size_t parse_payload(struct mk_websocket *s, struct mk_ws_receive_state *in, char *p, size_t len)
{
    uint64_t left = in->frame.len - in->at;
    size_t n = left < len ? (size_t)left : len;
    mk_ws_frame_mask(p, n, in->frame.mask, in->at);
    in->at += n;
    bool is_last = in->at == in->frame.len;
    if (mk_ws_frame_is_control(in->frame.opcode)) {
        memcpy(in->control + in->n_control, p, n);
        in->n_control = (uint8_t)(in->n_control + n);
    } else {
        append_data(s, in, mk_str_of(p, n), is_last);
    }
    if (is_last)
        finish_frame(s, in);
    return n;
}

/* Returns the number of bytes consumed. The received part of a frame that has begun is always consumed: only
 * the next frame may have to wait. */
static size_t parse_input(struct mk_websocket *s, struct mk_ws_receive_state *in, char *p, size_t len)
{
    size_t n = 0;
    while (n < len && may_read_frames(s)) {
        if (in->is_in_frame)
            n += parse_payload(s, in, p + n, len - n);
        else if (may_process_frame(s))
            n += parse_frame_head(s, in, p + n, len - n);
        else
            break;
    }
    return n;
}

/* ---- Reading ---- */

static void free_unparsed(struct mk_ws_receive_state *in)
{
    mk_mem_free(in->rest);
    in->rest = NULL;
}

/* Keeps input that may not be processed yet. */
static void save_unparsed(struct mk_websocket *s, struct mk_ws_receive_state *in, mk_str rest)
{
    in->rest = mk_mem_alloc(rest.len);
    if (!in->rest) {
        mk_ws_close_with_error(s, MK_WEBSOCKET_INTERNAL_ERROR);
        return;
    }
    memcpy(in->rest, rest.p, rest.len);
    in->rest_at = 0;
    in->rest_len = rest.len;
}

/* Processes input that was kept. True: everything was processed. */
static bool parse_saved_input(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    if (!in->rest)
        return true;
    in->rest_at += parse_input(s, in, in->rest + in->rest_at, in->rest_len - in->rest_at);
    if (in->rest_at < in->rest_len)
        return false;
    free_unparsed(in);
    return true;
}

/* Handles the result of mk_request_read(). True: there may be more. */
static bool handle_read_result(struct mk_websocket *s, struct mk_ws_receive_state *in, char *buf, ssize_t got)
{
    if (got == -EAGAIN)
        return false;
    if (got <= 0) {
        if (got == 0)
            mk_ws_close_on_eof(s);
        else
            mk_websocket_abort(s);
        return false;
    }
    s->was_heard = true;
    size_t n = parse_input(s, in, buf, (size_t)got);
    if (n < (size_t)got && may_read_frames(s))
        save_unparsed(s, in, mk_str_of(buf + n, (size_t)got - n));
    return true;
}

static void read_and_parse(struct mk_websocket *s, struct mk_ws_receive_state *in, char *buf)
{
    if (!parse_saved_input(s, in))
        return;
    for (unsigned n = 0; may_read_frames(s) && (in->is_in_frame || may_process_frame(s)); n++) {
        if (n == READS_MAX) {
            mk_ws_resume_later(s);
            return;
        }
        if (!handle_read_result(s, in, buf, mk_request_read(s->request, buf, ROOM)))
            return;
    }
}

static void free_receive_buffers(struct mk_ws_receive_state *in)
{
    free_unparsed(in);
    mk_buf_free(&in->message);
}

/* Moves a partial message to the heap until more arrives. */
static void save_receive_state(struct mk_websocket *s, struct mk_ws_receive_state *in)
{
    if (!may_read_frames(s) || is_between_messages(in)) {
        free_receive_buffers(in);
        mk_mem_free(s->inflow);
        s->inflow = NULL;
        return;
    }
    if (!s->inflow)
        s->inflow = mk_mem_alloc(sizeof *in);
    if (s->inflow) {
        *s->inflow = *in;
        return;
    }
    free_receive_buffers(in);
    mk_ws_close_with_error(s, MK_WEBSOCKET_INTERNAL_ERROR);
}

static void receive_first(struct mk_websocket *s, char *buf, ssize_t got)
{
    struct mk_ws_receive_state in = {0};
    if (handle_read_result(s, &in, buf, got))
        read_and_parse(s, &in, buf);
    save_receive_state(s, &in);
}

static void receive_more(struct mk_websocket *s, char *buf)
{
    struct mk_ws_receive_state in = *s->inflow;
    read_and_parse(s, &in, buf);
    save_receive_state(s, &in);
}

/* The tunnel also calls this function without new input, when queued output resumes the tunnel: then only a
 * socket with a partial message or saved input tries to read. */
bool mk_ws_receive_input(struct mk_websocket *s, bool has_input)
{
    char buf[ROOM];
    if (!may_read_frames(s))
        return false;
    s->is_stalled = false;
    if (s->inflow) {
        receive_more(s, buf);
    } else if (has_input && may_process_frame(s)) {
        ssize_t got = mk_request_read(s->request, buf, ROOM);
        if (got != -EAGAIN)
            receive_first(s, buf, got);
    }
    return may_read_frames(s);
}

void mk_ws_receive_free(struct mk_websocket *s)
{
    if (s->inflow)
        free_receive_buffers(s->inflow);
    mk_mem_free(s->inflow);
    s->inflow = NULL;
}
