/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a session: control frames, and the buffer that collects the frames of a loop iteration. */
#ifndef MK_HTTP2CLIENT_H2_SESSION_WRITE_H
#define MK_HTTP2CLIENT_H2_SESSION_WRITE_H

#include "http2client/h2_session_type.h"

static inline void mk_h2_session_write_move(struct mk_h2_session *ss, enum mk_h2_session_state to)
{
    mk_state_move(&ss->state, &mk_h2_session_machine, ss, to);
}
static inline size_t mk_h2_session_write_unsent(const struct mk_h2_session *ss)
{
    return ss->out.len - ss->sent;
}

/* Returns the output buffer for frames, and schedules the flush at the end of the loop iteration. */
struct mk_buf *mk_h2_session_write_buffer(struct mk_h2_session *ss);
/* Schedules mk_upstream_http2_module.flush(). */
void mk_h2_session_write_schedule(struct mk_h2_session *ss);
/* Writes as much as the socket accepts. On an error, the session fails. */
void mk_h2_session_write_flush(struct mk_h2_session *ss);

/* Writes the client's preface and SETTINGS. */
void mk_h2_session_write_preface(struct mk_buf *out);
void mk_h2_session_write_rst_stream(struct mk_h2_session *ss, uint32_t stream, enum mk_h2_error error);
/* Gives receive window back: of a stream, or of the session for stream 0. */
void mk_h2_session_write_window_update(struct mk_h2_session *ss, uint32_t stream, uint32_t by);
/* Sends a PING if none is outstanding. */
void mk_h2_session_write_ping(struct mk_h2_session *ss);

/* The session has failed: without a socket, or with a GOAWAY that names the error. `problem` is static. The
 * session notifies its streams later: see h2_session.c. */
void mk_h2_session_write_fail(struct mk_h2_session *ss, int error, const char *problem);
void mk_h2_session_write_goaway(struct mk_h2_session *ss, enum mk_h2_error code, const char *problem);

#endif
