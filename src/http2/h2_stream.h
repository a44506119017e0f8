/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 streams: creation and end, timeouts, request body data that no handler has read yet, and the receive
 * windows that limit this data (RFC 9113, section 5.2).
 *
 * A connection holds at most limits->h2.unread_max bytes: its window opens only when data is read or
 * discarded. Each stream has a share of this limit, so streams that no handler reads cannot close the
 * connection's window for others. The rest (`spare`) widens the windows of streams whose handlers read. */
#ifndef MK_HTTP2_H2_STREAM_H
#define MK_HTTP2_H2_STREAM_H

#include "http2/h2_types.h"

enum { MK_H2_DRAIN_MAX = 64 * 1024 }; /* maximum unwanted body data that is read to the end and discarded */

struct mk_h2_stream *mk_h2_stream_find(const struct mk_h2 *h2, uint32_t id);

/* Creates a stream with an empty request. NULL: out of memory. */
struct mk_h2_stream *mk_h2_stream_new(struct mk_h2 *h2, uint32_t id) MK_MUST_USE;

/* Closes the stream and writes its access-log entry, unless it was written before. The memory stays until
 * mk_h2_stream_free_closed(), so that callers may still read it. Resetting, waking or queueing a closed
 * stream has no effect. */
void mk_h2_stream_close(struct mk_h2_stream *s, enum mk_outcome outcome);
/* Like mk_h2_stream_close(), but also sends RST_STREAM. */
void mk_h2_stream_reset(struct mk_h2_stream *s, enum mk_h2_error error, enum mk_outcome outcome);
void mk_h2_stream_close_all(struct mk_h2 *h2, enum mk_outcome outcome);
/* Frees closed streams. Called between two steps of a loop iteration, when no function holds a pointer to a
 * stream. */
void mk_h2_stream_free_closed(struct mk_h2 *h2);
static inline bool mk_h2_stream_is_closed(const struct mk_h2_stream *s)
{
    return s->d.reply.current == MK_RESPONSE_RECORDED && s->d.state.current == MK_HTTP_STREAM_CLOSED;
}

/* Call it when the response is complete, but the client is still sending an unwanted body: lets the client
 * finish if little is left. */
void mk_h2_stream_drain(struct mk_h2_stream *s);
static inline bool mk_h2_stream_is_draining(const struct mk_h2_stream *s)
{
    return s->d.reply.current == MK_RESPONSE_RECORDED &&
           s->d.state.current == MK_HTTP_STREAM_HALF_CLOSED_LOCAL;
}

/* Call it when the client has reset the stream as well. */
void mk_h2_stream_forget_reset(struct mk_h2 *h2, uint32_t id);
/* Did we reset the stream so recently that the client may not know yet? */
bool mk_h2_stream_was_reset(const struct mk_h2 *h2, uint32_t id);
/* Was the stream opened after our GOAWAY? Its frames are ignored. */
static inline bool mk_h2_stream_is_late(const struct mk_h2 *h2, uint32_t id)
{
    return id > h2->final_stream;
}

/* Sets the windows of a new connection. */
void mk_h2_stream_init_windows(struct mk_h2 *h2);
/* Sends WINDOW_UPDATE for data no longer held. */
void mk_h2_stream_send_window_updates(struct mk_h2 *h2);

/* Receives body data; `ends`: the body ends with it. */
void mk_h2_stream_receive(struct mk_h2_stream *s, mk_str data, bool ends);
/* Sends 100 Continue if the client waits for it. */
void mk_h2_stream_send_continue(struct mk_h2_stream *s);
/* Discards body data that has arrived or will arrive. */
void mk_h2_stream_discard_input(struct mk_h2_stream *s);
/* Call it when the client has closed its side: fails the incomplete bodies of all streams. */
void mk_h2_stream_end_input(struct mk_h2 *h2);

/* Queues the stream to be run when the connection is served next. */
void mk_h2_stream_wake(struct mk_h2_stream *s);
/* Adds the stream to the list of streams with output. */
void mk_h2_stream_queue_output(struct mk_h2_stream *s);
void mk_h2_stream_set_timeout(struct mk_h2_stream *s, enum mk_conn_timeout timeout);
static inline void mk_h2_stream_stop_timeout(struct mk_h2_stream *s)
{
    s->timeout = MK_TIMEOUT_NONE;
}
/* Sets the timeout of the stream's current wait; closes the stream if mk_http_stream_is_client_gone(). */
void mk_h2_stream_set_wait_timeout(struct mk_h2_stream *s);

#endif
