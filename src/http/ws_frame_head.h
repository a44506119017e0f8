/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames (RFC 6455, section 5): heads, masking, close codes. */
#ifndef MK_HTTP_WS_FRAME_HEAD_H
#define MK_HTTP_WS_FRAME_HEAD_H

#include "base/compiler.h"
#include "base/str.h"

enum mk_ws_opcode {
    MK_WS_CONTINUATION = 0,
    MK_WS_TEXT = 1,
    MK_WS_BINARY = 2,
    MK_WS_CLOSE = 8,
    MK_WS_PING = 9,
    MK_WS_PONG = 10,
};

enum {
    MK_WS_HEAD_MIN = 2,
    MK_WS_HEAD_MAX = 14,     /* longest frame head of a client; the heads of a server have no mask */
    MK_WS_CONTROL_MAX = 125, /* maximum payload bytes of a control frame */
    MK_WS_FIN = 0x80,
    MK_WS_COMPRESSED = 0x40, /* RSV1, as used by RFC 7692 */
};

struct mk_ws_frame_head {
    uint8_t opcode;
    bool is_final, is_compressed, is_masked;
    uint8_t mask[4];
    uint64_t len; /* payload length */
};

/* Returns the length of the head that starts at `p`, where at least MK_WS_HEAD_MIN bytes must be
 * available. */
size_t mk_ws_frame_head_len(const uint8_t *p);
/* Parses a complete head. Returns NULL, or an error text for a head that is invalid with and without
 * compression: an unknown opcode, RSV2 or RSV3, an invalid or non-minimal length, a long or fragmented
 * control frame. */
const char *mk_ws_frame_head_parse(struct mk_ws_frame_head *f, const uint8_t *p) MK_MUST_USE;
/* Is it the opcode of a control frame, which may come between the frames of a message? */
static inline bool mk_ws_frame_is_control(unsigned opcode)
{
    return opcode & 8;
}

/* Writes the head of an unmasked frame; `first` is the opcode with MK_WS_FIN and MK_WS_COMPRESSED. Returns
 * its length. */
size_t mk_ws_frame_head_write(uint8_t out[MK_WS_HEAD_MAX], unsigned first, uint64_t len);

/* Masks or unmasks bytes. `at`: their offset in the payload. */
void mk_ws_frame_mask(char *p, size_t len, const uint8_t mask[4], uint64_t at);

/* Is the code allowed in a Close frame? */
bool mk_ws_frame_is_close_code(unsigned code);

#endif
