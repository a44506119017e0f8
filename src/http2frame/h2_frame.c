/* SPDX-License-Identifier: Apache-2.0 */
#include "http2frame/h2_frame.h"

static uint32_t read_big_endian(const char *p, unsigned n)
{
    uint32_t value = 0;
    while (n--)
        value = value << 8 | (uint8_t)*p++;
    return value;
}

uint32_t mk_h2_frame_read_u32(mk_str four_bytes)
{
    return read_big_endian(four_bytes.p, 4);
}

struct mk_h2_frame mk_h2_frame_parse(mk_str in)
{
    return (struct mk_h2_frame){
        .length = read_big_endian(in.p, 3),
        .type = (uint8_t)in.p[3],
        .flags = (uint8_t)in.p[4],
        .stream = read_big_endian(in.p + 5, 4) & MK_H2_STREAM_MAX,
    };
}

/* Where a frame is allowed: on streams, on the connection, or on both. */
enum frame_scope { ANYWHERE, ON_STREAM, ON_CONNECTION, NOWHERE };

static const struct frame_rule {
    enum frame_scope frame_scope;
    uint32_t size; /* exact payload size; 0: any */
    uint32_t size_min;
} frame_rules[] = {
    [MK_H2_DATA] = {.frame_scope = ON_STREAM},
    [MK_H2_HEADERS] = {.frame_scope = ON_STREAM},
    [MK_H2_PRIORITY] = {.frame_scope = ON_STREAM, .size = 5},
    [MK_H2_RST_STREAM] = {.frame_scope = ON_STREAM, .size = 4},
    [MK_H2_SETTINGS] = {.frame_scope = ON_CONNECTION},
    [MK_H2_PUSH_PROMISE] = {.frame_scope = NOWHERE},
    [MK_H2_PING] = {.frame_scope = ON_CONNECTION, .size = 8},
    [MK_H2_GOAWAY] = {.frame_scope = ON_CONNECTION, .size_min = 8},
    [MK_H2_WINDOW_UPDATE] = {.frame_scope = ANYWHERE, .size = 4},
    [MK_H2_CONTINUATION] = {.frame_scope = ON_STREAM},
    [MK_H2_PRIORITY_UPDATE] = {.frame_scope = ON_CONNECTION, .size_min = 4},
};

static bool has_wrong_size(const struct mk_h2_frame *f, const struct frame_rule *r)
{
    if (f->type == MK_H2_SETTINGS)
        return f->flags & MK_H2_ACK ? f->length != 0 : f->length % 6 != 0;
    return (r->size && f->length != r->size) || f->length < r->size_min;
}

enum mk_h2_error mk_h2_frame_check(const struct mk_h2_frame *f)
{
    if (f->length > MK_H2_FRAME_MAX)
        return MK_H2_FRAME_SIZE_ERROR;
    if (f->type > MK_H2_CONTINUATION && f->type != MK_H2_PRIORITY_UPDATE)
        return MK_H2_NO_ERROR;
    const struct frame_rule *r = &frame_rules[f->type];
    bool misplaced = r->frame_scope == NOWHERE || (r->frame_scope == ON_STREAM && !f->stream) ||
                     (r->frame_scope == ON_CONNECTION && f->stream);
    if (misplaced)
        return MK_H2_PROTOCOL_ERROR;
    return has_wrong_size(f, r) ? MK_H2_FRAME_SIZE_ERROR : MK_H2_NO_ERROR;
}

bool mk_h2_frame_unpad(const struct mk_h2_frame *f, mk_str *payload)
{
    size_t pad = 0;
    if (f->flags & MK_H2_PADDED) {
        if (payload->len < 1)
            return false;
        pad = (uint8_t)payload->p[0];
        *payload = mk_str_skip(*payload, 1);
    }
    if (f->type == MK_H2_HEADERS && f->flags & MK_H2_WITH_PRIORITY) {
        if (payload->len < 5)
            return false;
        *payload = mk_str_skip(*payload, 5);
    }
    if (pad > payload->len)
        return false;
    payload->len -= pad;
    return true;
}

bool mk_h2_frame_next_setting(mk_str *payload, unsigned *id, uint32_t *value)
{
    if (payload->len < 6)
        return false;
    *id = read_big_endian(payload->p, 2);
    *value = read_big_endian(payload->p + 2, 4);
    *payload = mk_str_skip(*payload, 6);
    return true;
}

/* ---- Writing ---- */

static void write_big_endian(char *at, uint32_t n, unsigned bytes)
{
    while (bytes--)
        *at++ = (char)(n >> 8 * bytes & 0xff);
}

void mk_h2_frame_write_head(char *at, uint32_t length, enum mk_h2_type type, unsigned flags, uint32_t stream)
{
    write_big_endian(at, length, 3);
    at[3] = (char)type;
    at[4] = (char)flags;
    write_big_endian(at + 5, stream, 4);
}

void mk_h2_frame_emit_head(struct mk_buf *out, uint32_t length, enum mk_h2_type type, unsigned flags,
                           uint32_t stream)
{
    char head[MK_H2_FRAME_HEAD];
    mk_h2_frame_write_head(head, length, type, flags, stream);
    mk_buf_add(out, mk_str_of(head, sizeof head));
}

void mk_h2_frame_emit_u32(struct mk_buf *out, uint32_t n)
{
    char bytes[4];
    write_big_endian(bytes, n, 4);
    mk_buf_add(out, mk_str_of(bytes, sizeof bytes));
}

void mk_h2_frame_emit_setting(struct mk_buf *out, enum mk_h2_setting id, uint32_t value)
{
    char bytes[2];
    write_big_endian(bytes, (uint32_t)id, 2);
    mk_buf_add(out, mk_str_of(bytes, sizeof bytes));
    mk_h2_frame_emit_u32(out, value);
}

void mk_h2_frame_emit_goaway(struct mk_buf *out, uint32_t last_stream, enum mk_h2_error error)
{
    mk_h2_frame_emit_head(out, 8, MK_H2_GOAWAY, 0, 0);
    mk_h2_frame_emit_u32(out, last_stream);
    mk_h2_frame_emit_u32(out, error);
}

void mk_h2_frame_emit_rst_stream(struct mk_buf *out, uint32_t stream, enum mk_h2_error error)
{
    mk_h2_frame_emit_head(out, 4, MK_H2_RST_STREAM, 0, stream);
    mk_h2_frame_emit_u32(out, error);
}

void mk_h2_frame_emit_window_update(struct mk_buf *out, uint32_t stream, uint32_t by)
{
    mk_h2_frame_emit_head(out, 4, MK_H2_WINDOW_UPDATE, 0, stream);
    mk_h2_frame_emit_u32(out, by);
}

void mk_h2_frame_emit_ping(struct mk_buf *out, bool ack, mk_str eight_bytes)
{
    mk_h2_frame_emit_head(out, 8, MK_H2_PING, ack ? MK_H2_ACK : 0, 0);
    mk_buf_add(out, eight_bytes);
}
