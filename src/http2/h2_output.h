/* SPDX-License-Identifier: Apache-2.0 */
/* Sends HTTP/2 responses: writes heads and content into frames, the most urgent first, as far as windows and
 * socket have room. */
#ifndef MK_HTTP2_H2_OUTPUT_H
#define MK_HTTP2_H2_OUTPUT_H

#include "http2/h2_types.h"

/* Sends a small response at once if no other output is pending. True: it was sent, and the stream may be
 * closed. */
bool mk_h2_output_try_send_now(struct mk_h2_stream *s);
/* Sends for all streams that have something to send. */
void mk_h2_output_send(struct mk_h2 *h2);
/* Is there output that only waits for the client's window or socket? */
bool mk_h2_output_is_blocked(const struct mk_h2 *h2);

#endif
