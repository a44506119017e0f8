/* SPDX-License-Identifier: Apache-2.0 */
/* Writes HTTP/2 frames other than DATA: header blocks, control frames, GOAWAY; manages the output buffer. */
#ifndef MK_HTTP2_H2_WRITE_H
#define MK_HTTP2_H2_WRITE_H

#include "http2/h2_state.h"

/* Returns the worker's output buffer, which collects frames while the connection is served. */
static inline struct mk_buf *mk_h2_write_buffer(const struct mk_h2 *h2)
{
    return &h2->conn->manager->out;
}
/* Reserves space for a frame of n bytes in the output buffer. */
struct mk_buf *mk_h2_write_reserve(struct mk_h2 *h2, size_t n);
/* Like mk_h2_write_reserve(), but for a control frame, which does not count as progress for MinRate. */
struct mk_buf *mk_h2_write_reserve_control(struct mk_h2 *h2, size_t n);
/* Flushes the output buffer to the socket and the send queue. False: the connection is lost. */
bool mk_h2_write_flush(struct mk_h2 *h2);

/* Begins a header block: reserves space for its first frame header. */
void mk_h2_write_begin_block(struct mk_h2 *h2);
/* Ends the block: fills in the frame header, and splits a long block into frames. `from`: start of the block
 * in the output buffer. False: the block did not fit, and was removed. */
bool mk_h2_write_end_block(struct mk_h2 *h2, size_t from, uint32_t id, unsigned flags);
/* Removes a complete block and everything after it. */
void mk_h2_write_remove_block(struct mk_h2 *h2, size_t from);

/* Adds a header to the block, unless HTTP/2 forbids the header. */
void mk_h2_write_header(struct mk_buf *out, mk_str name, mk_str value);

void mk_h2_write_rst_stream(struct mk_h2 *h2, uint32_t stream, enum mk_h2_error error);
void mk_h2_write_window_update(struct mk_h2 *h2, uint32_t stream, uint32_t by);

/* Writes GOAWAY with an error code: the connection has failed. Logs the reason `message` and increments its
 * counter. */
void mk_h2_write_goaway_error(struct mk_h2 *h2, enum mk_h2_error error, enum mk_h2_reason message);
/* First step of a graceful shutdown (RFC 9113, section 6.8): sends a GOAWAY with the highest possible stream
 * identifier, which refuses no stream, and a PING. */
void mk_h2_write_goaway_warning(struct mk_h2 *h2);
/* Second step: sends the final GOAWAY, when the client has acknowledged the PING and thus received the first
 * GOAWAY. */
void mk_h2_write_goaway_after_ping(struct mk_h2 *h2);
/* Sends the final GOAWAY immediately. */
void mk_h2_write_goaway(struct mk_h2 *h2);

#endif
