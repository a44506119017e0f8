/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of WebSocket (RFC 6455, section 5): their heads, their mask, codes of closing. */
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
    MK_WS_HEAD_MAX = 14,     /* of a client; that of a server has no mask */
    MK_WS_CONTROL_MAX = 125, /* bytes of payload of a control frame */
    MK_WS_FIN = 0x80,
    MK_WS_COMPRESSED = 0x40, /* RSV1, as RFC 7692 uses it */
};

struct mk_ws_frame_head {
    uint8_t opcode;
    bool is_final, is_compressed, is_masked;
    uint8_t mask[4];
    uint64_t len; /* of the payload */
};

/* The length of the head whose first bytes these are, at least MK_WS_HEAD_MIN of them. */
size_t mk_ws_frame_head_len(const uint8_t *p);
/* Reads a whole head. NULL, or what is wrong with it, whatever was agreed upon: an unknown opcode, reserved
 * bits, a length that has a shorter form, a control frame that is long or in pieces. */
const char *mk_ws_frame_head_parse(struct mk_ws_frame_head *f, const uint8_t *p) MK_MUST_USE;
/* A control frame may come between the frames of a message. */
static inline bool mk_ws_frame_is_control(unsigned opcode)
{
    return opcode & 8;
}

/* Writes the head of a frame without a mask; `first` is the opcode with MK_WS_FIN and MK_WS_COMPRESSED.
 * Answers its length. */
size_t mk_ws_frame_head_write(uint8_t out[MK_WS_HEAD_MAX], unsigned first, uint64_t len);

/* Puts the mask on, or takes it off. `at` is where in the payload these bytes begin. */
void mk_ws_frame_mask(char *p, size_t len, const uint8_t mask[4], uint64_t at);

/* May a Close frame have this code? */
bool mk_ws_frame_is_close_code(unsigned code);

#endif
