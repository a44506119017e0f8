/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_send.h"

#include <errno.h>

#include "http/ws_frame_head.h"
#include "websocket/ws_message.h"

bool mk_ws_send_has_room(const struct mk_websocket *s)
{
    return s->queue.weight < mk_ws_queue_max(s);
}

static int queue_frame(struct mk_websocket *s, unsigned first, mk_str payload)
{
    uint8_t head[MK_WS_HEAD_MAX];
    size_t n = mk_ws_frame_head_write(head, first, payload.len);
    if (!mk_ws_queue_push(&s->queue, mk_str_of((const char *)head, n), payload))
        return -ENOMEM;
    mk_ws_resume(s);
    return 0;
}

bool mk_ws_send_control(struct mk_websocket *s, unsigned opcode, mk_str payload)
{
    return !queue_frame(s, MK_WS_FIN | opcode, payload);
}

/* Checks whether a message can be queued now. Returns 0 or a negative errno value. */
static int check_may_send(struct mk_websocket *s, bool whole)
{
    if (s->state.current != MK_WS_OPEN)
        return -ESHUTDOWN;
    if (whole && s->parts_kind)
        return -EBUSY;
    if (mk_ws_send_has_room(s))
        return 0;
    s->is_refusing = true;
    return -EAGAIN;
}

/* ---- Compressed messages ---- */

static bool should_compress(const struct mk_websocket *s, size_t len)
{
    return s->is_compressed && len >= mk_ws_compress_min(s);
}

/* Compresses into a buffer smaller than the message; false: send it uncompressed. */
static bool compress_message(struct mk_websocket *s, mk_str data, struct mk_buf *out)
{
    bool keeps = s->offer.server_keeps;
    struct mk_ws_deflate *c = keeps ? s->coder : mk_ws_shared_deflate(s->worker, s->offer.server_bits);
    s->is_coding = true;
    return c && mk_ws_deflate_compress(c, data, keeps, out) == 0;
}

static int queue_message(struct mk_websocket *s, unsigned opcode, mk_str data)
{
    struct mk_buf code = mk_buf_growing(data.len);
    if (!should_compress(s, data.len) || !compress_message(s, data, &code)) {
        mk_buf_free(&code);
        return queue_frame(s, MK_WS_FIN | opcode, data);
    }
    int e = queue_frame(s, MK_WS_FIN | MK_WS_COMPRESSED | opcode, mk_buf_str(&code));
    if (e && s->coder)
        mk_ws_deflate_reset_compression(s->coder); /* the client lacks data that the next message would refer
                                                    * to */
    mk_buf_free(&code);
    return e;
}

static const struct mk_ws_frame *choose_frame(struct mk_websocket *s, struct mk_websocket_message *m)
{
    struct mk_ws_deflate *coder = NULL;
    if (should_compress(s, mk_ws_message_len(m)) && s->offer.server_bits == MK_WS_EXTENSION_BITS_MAX)
        coder = mk_ws_shared_deflate(s->worker, MK_WS_EXTENSION_BITS_MAX);
    const struct mk_ws_frame *packed = coder ? mk_ws_message_compressed_frame(m, coder) : NULL;
    if (!packed)
        return mk_ws_message_plain_frame(m);
    if (s->coder)
        mk_ws_deflate_reset_compression(
            s->coder); /* the client's window now contains a message that this compressor did not see */
    return packed;
}

/* ---- Owner API ---- */

int mk_websocket_send(struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    int e = check_may_send(s, true);
    return e ? e : queue_message(s, (unsigned)kind, data);
}

int mk_websocket_send_part(struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data, bool last)
{
    int e = check_may_send(s, false);
    if (e)
        return e;
    unsigned opcode = s->parts_kind ? MK_WS_CONTINUATION : (unsigned)kind;
    e = queue_frame(s, opcode | (last ? MK_WS_FIN : 0), data);
    if (!e)
        s->parts_kind = last ? 0 : (uint8_t)kind;
    return e;
}

int mk_websocket_send_message(struct mk_websocket *s, struct mk_websocket_message *m)
{
    int e = check_may_send(s, true);
    if (e)
        return e;
    if (!mk_ws_queue_push_shared(&s->queue, choose_frame(s, m)))
        return -ENOMEM;
    mk_ws_resume(s);
    return 0;
}

int mk_websocket_ping(struct mk_websocket *s, mk_str data)
{
    if (data.len == 0 || data.len > MK_WS_CONTROL_MAX)
        return -EINVAL;
    int e = check_may_send(s, false);
    return e ? e : queue_frame(s, MK_WS_FIN | MK_WS_PING, data);
}
