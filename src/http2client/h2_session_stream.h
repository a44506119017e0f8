/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a session: the operations of struct mk_stream for their connections, flow control in both
 * directions, and the queue of received data.
 *
 * A request writes frames without a stream identifier (h2_codec.c): HEADERS, CONTINUATION, and DATA of up to
 * 64 KB. The stream adds its identifier, and splits DATA as the windows allow. The request reads records:
 * a frame header (length, type and flags) followed by the text of a head or of trailers, or by body data. A
 * tunnel has neither: both directions are plain bytes. */
#ifndef MK_HTTP2CLIENT_H2_SESSION_STREAM_H
#define MK_HTTP2CLIENT_H2_SESSION_STREAM_H

#include "http2client/h2_session_type.h"

enum {
    MK_H2_SESSION_STREAM_CONNECT = 0x40,  /* flag of HEADERS that a request writes: extended CONNECT */
    MK_H2_SESSION_STREAM_TRAILERS = 0x80, /* flag of a record of type HEADERS: it holds trailers */
};

/* Attaches a waiting connection as a new stream. False: out of memory. */
bool mk_h2_session_stream_attach(struct mk_h2_session *ss, struct mk_upstream_conn *c) MK_MUST_USE;
struct mk_h2_session_stream *mk_h2_session_stream_find(const struct mk_h2_session *ss, uint32_t id);

/* Queues a record; `ends`: END_STREAM. If memory runs out, the stream is reset. */
void mk_h2_session_stream_receive(struct mk_h2_session_stream *s, enum mk_h2_type type, unsigned flags,
                                  mk_str payload);
/* Schedules a call to the owner of the stream's connection. */
void mk_h2_session_stream_notify(struct mk_h2_session_stream *s, unsigned events);
/* Fails the stream. Data that is queued stays readable. */
void mk_h2_session_stream_fail(struct mk_h2_session_stream *s, int error, const char *problem);
/* The same, and sends RST_STREAM. */
void mk_h2_session_stream_reset(struct mk_h2_session_stream *s, enum mk_h2_error code, int error,
                                const char *problem);
/* Fails a stream that needs extended CONNECT if the open session does not support it. */
void mk_h2_session_stream_check_tunnel(struct mk_h2_session_stream *s);
/* Wakes the streams that wait for a window or for space in the output buffer. */
void mk_h2_session_stream_wake_blocked(struct mk_h2_session *ss);

#endif
