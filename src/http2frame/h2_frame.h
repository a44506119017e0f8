/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frames (RFC 9113, sections 4 and 6): parsing, validation and writing of frame headers. */
#ifndef MK_HTTP2FRAME_H2_FRAME_H
#define MK_HTTP2FRAME_H2_FRAME_H

#include "base/buf.h"
#include "base/err.h"

enum mk_h2_type {
    MK_H2_DATA,
    MK_H2_HEADERS,
    MK_H2_PRIORITY,
    MK_H2_RST_STREAM,
    MK_H2_SETTINGS,
    MK_H2_PUSH_PROMISE,
    MK_H2_PING,
    MK_H2_GOAWAY,
    MK_H2_WINDOW_UPDATE,
    MK_H2_CONTINUATION,
    MK_H2_PRIORITY_UPDATE = 0x10, /* RFC 9218, section 7.1 */
};

enum {
    MK_H2_END_STREAM = 0x1,
    MK_H2_ACK = 0x1,
    MK_H2_END_HEADERS = 0x4,
    MK_H2_PADDED = 0x8,
    MK_H2_WITH_PRIORITY = 0x20,
};

/* RFC 9113, section 7. */
enum mk_h2_error {
    MK_H2_NO_ERROR,
    MK_H2_PROTOCOL_ERROR,
    MK_H2_INTERNAL_ERROR,
    MK_H2_FLOW_CONTROL_ERROR,
    MK_H2_SETTINGS_TIMEOUT,
    MK_H2_STREAM_CLOSED,
    MK_H2_FRAME_SIZE_ERROR,
    MK_H2_REFUSED_STREAM,
    MK_H2_CANCEL,
    MK_H2_COMPRESSION_ERROR,
    MK_H2_CONNECT_ERROR,
    MK_H2_ENHANCE_YOUR_CALM,
    MK_H2_INADEQUATE_SECURITY,
    MK_H2_HTTP_1_1_REQUIRED,
};

/* RFC 9113, section 6.5.2, RFC 8441 and RFC 9218. */
enum mk_h2_setting {
    MK_H2_HEADER_TABLE_SIZE = 1,
    MK_H2_ENABLE_PUSH,
    MK_H2_MAX_CONCURRENT_STREAMS,
    MK_H2_INITIAL_WINDOW_SIZE,
    MK_H2_MAX_FRAME_SIZE,
    MK_H2_MAX_HEADER_LIST_SIZE,
    MK_H2_ENABLE_CONNECT_PROTOCOL = 8,
    MK_H2_NO_RFC7540_PRIORITIES = 9,
};

enum {
    MK_H2_FRAME_HEAD = 9,
    MK_H2_FRAME_MAX = 16384, /* payload size that every peer accepts, and our maximum */
    MK_H2_WINDOW = 65535,    /* initial windows */
    MK_H2_WINDOW_MAX = 0x7fffffff,
    MK_H2_STREAM_MAX = 0x7fffffff,
};

struct mk_h2_frame {
    uint32_t length; /* payload length */
    uint8_t type, flags;
    uint32_t stream;
};

/* Parses a frame header. `in` must hold at least MK_H2_FRAME_HEAD bytes. */
struct mk_h2_frame mk_h2_frame_parse(mk_str in);

/* Validates a frame header without regard to the state of the connection. Returns 0, or the enum mk_h2_error
 * that ends the connection. Frames of unknown types are valid; ignore them. */
enum mk_h2_error mk_h2_frame_check(const struct mk_h2_frame *f);

/* Removes padding and priority from the payload of DATA and HEADERS. False: the padding is longer than the
 * frame. */
bool mk_h2_frame_unpad(const struct mk_h2_frame *f, mk_str *payload) MK_MUST_USE;

/* Parses the next setting of a SETTINGS payload. False: there is none. */
bool mk_h2_frame_next_setting(mk_str *payload, unsigned *id, uint32_t *value);

uint32_t mk_h2_frame_read_u32(mk_str four_bytes);

/* ---- Writing ---- */

void mk_h2_frame_emit_head(struct mk_buf *out, uint32_t length, enum mk_h2_type type, unsigned flags,
                           uint32_t stream);
/* Writes a frame header over nine reserved bytes. */
void mk_h2_frame_write_head(char *at, uint32_t length, enum mk_h2_type type, unsigned flags, uint32_t stream);
void mk_h2_frame_emit_u32(struct mk_buf *out, uint32_t n);
void mk_h2_frame_emit_setting(struct mk_buf *out, enum mk_h2_setting id, uint32_t value);
void mk_h2_frame_emit_goaway(struct mk_buf *out, uint32_t last_stream, enum mk_h2_error error);
void mk_h2_frame_emit_rst_stream(struct mk_buf *out, uint32_t stream, enum mk_h2_error error);
void mk_h2_frame_emit_window_update(struct mk_buf *out, uint32_t stream, uint32_t by);
void mk_h2_frame_emit_ping(struct mk_buf *out, bool ack, mk_str eight_bytes);

#endif
