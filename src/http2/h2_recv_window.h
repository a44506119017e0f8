/* SPDX-License-Identifier: Apache-2.0 */
/* Holds request body data not yet read by a handler, and manages the receive windows that limit it (RFC 9113,
 * section 5.2).
 *
 * A connection holds at most limits->h2.unread_max bytes: its window opens only when data is read or
 * discarded. Each stream has a share of that, so streams that no handler reads cannot close the connection's
 * window for others. The spare part widens the windows of streams whose handlers read. */
#ifndef MK_HTTP2_H2_RECV_WINDOW_H
#define MK_HTTP2_H2_RECV_WINDOW_H

#include "http2/h2_types.h"

/* Sets the windows of a new connection, and of a new stream. */
void mk_h2_recv_window_init(struct mk_h2 *h2);
void mk_h2_recv_window_init_stream(struct mk_h2_stream *s);

/* Holds body data that has arrived. False: out of memory. */
bool mk_h2_recv_window_enqueue(struct mk_h2_stream *s, mk_str data) MK_MUST_USE;
/* Reads held data. Returns 0 if no data is held. */
size_t mk_h2_recv_window_read(struct mk_h2_stream *s, char *buf, size_t cap);
/* Frees the held data. */
void mk_h2_recv_window_discard(struct mk_h2_stream *s);
/* Call it when the stream is closed: frees its data, and returns its part of the window. */
void mk_h2_recv_window_close_stream(struct mk_h2_stream *s);

/* Call it when the handler has read everything: widens the window as much as the connection allows. */
void mk_h2_recv_window_grow(struct mk_h2_stream *s);
/* Call it when body data has arrived, was read, or has ended: marks the stream for
 * mk_h2_recv_window_send_updates(). */
void mk_h2_recv_window_mark_changed(struct mk_h2_stream *s);
/* Sends WINDOW_UPDATE for data no longer held. */
void mk_h2_recv_window_send_updates(struct mk_h2 *h2);

#endif
