/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_frame_head.h"

enum {
    RESERVED = 0x30, /* RSV2 and RSV3 */
    OPCODE = 0x0f,
    MASKED = 0x80,
    LEN = 0x7f,
    LEN16 = 126, /* 16-bit length follows */
    LEN64 = 127, /* 64-bit length follows */
    MASK_LEN = 4,
};

static size_t extended_length_size(const uint8_t *p)
{
    unsigned len = p[1] & LEN;
    return len == LEN16 ? 2 : len == LEN64 ? 8 : 0;
}

size_t mk_ws_frame_head_len(const uint8_t *p)
{
    return MK_WS_HEAD_MIN + extended_length_size(p) + (p[1] & MASKED ? MASK_LEN : 0);
}

static uint64_t read_big_endian(const uint8_t *p, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n = n << 8 | p[i];
    return n;
}

static const char *check_frame_head(const struct mk_ws_frame_head *f, const uint8_t *p)
{
    unsigned form = p[1] & LEN;
    if (p[0] & RESERVED)
        return "reserved bits";
    if ((f->opcode > MK_WS_BINARY && f->opcode < MK_WS_CLOSE) || f->opcode > MK_WS_PONG)
        return "unknown opcode";
    if ((form == LEN16 && f->len < LEN16) || (form == LEN64 && (f->len <= UINT16_MAX || f->len > INT64_MAX)))
        return "invalid length";
    if (mk_ws_frame_is_control(f->opcode) && !f->is_final)
        return "fragmented control frame";
    if (mk_ws_frame_is_control(f->opcode) && f->len > MK_WS_CONTROL_MAX)
        return "control frame too long";
    return NULL;
}

const char *mk_ws_frame_head_parse(struct mk_ws_frame_head *f, const uint8_t *p)
{
    size_t extra = extended_length_size(p);
    *f = (struct mk_ws_frame_head){
        .opcode = p[0] & OPCODE,
        .is_final = p[0] & MK_WS_FIN,
        .is_compressed = p[0] & MK_WS_COMPRESSED,
        .is_masked = p[1] & MASKED,
        .len = extra ? read_big_endian(p + MK_WS_HEAD_MIN, extra) : p[1] & LEN,
    };
    if (f->is_masked)
        memcpy(f->mask, p + MK_WS_HEAD_MIN + extra, MASK_LEN);
    return check_frame_head(f, p);
}

static size_t write_big_endian(uint8_t *out, uint64_t n, size_t len)
{
    for (size_t i = len; i-- > 0; n >>= 8)
        out[i] = (uint8_t)n;
    return MK_WS_HEAD_MIN + len;
}

size_t mk_ws_frame_head_write(uint8_t out[MK_WS_HEAD_MAX], unsigned first, uint64_t len)
{
    out[0] = (uint8_t)first;
    if (len < LEN16) {
        out[1] = (uint8_t)len;
        return MK_WS_HEAD_MIN;
    }
    bool is_short = len <= UINT16_MAX;
    out[1] = is_short ? LEN16 : LEN64;
    return write_big_endian(out + MK_WS_HEAD_MIN, len, is_short ? 2 : 8);
}

void mk_ws_frame_mask(char *p, size_t len, const uint8_t mask[4], uint64_t at)
{
    uint8_t turned[8];
    for (size_t i = 0; i < sizeof turned; i++)
        turned[i] = mask[(at + i) % MASK_LEN];
    uint64_t all, eight;
    memcpy(&all, turned, sizeof all);
    size_t i = 0;
    for (; i + sizeof eight <= len; i += sizeof eight) {
        memcpy(&eight, p + i, sizeof eight);
        eight ^= all;
        memcpy(p + i, &eight, sizeof eight);
    }
    for (size_t j = 0; i < len; i++, j++)
        p[i] = (char)((uint8_t)p[i] ^ turned[j]);
}

bool mk_ws_frame_is_close_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}
