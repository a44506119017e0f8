/* SPDX-License-Identifier: Apache-2.0 */
/* Sends HTTP/2 responses: writes heads and bodies into frames, the most urgent first, as much as the
 * windows and the socket allow. */
#ifndef MK_HTTP2_H2_OUTPUT_H
#define MK_HTTP2_H2_OUTPUT_H

#include "http2/h2_types.h"

/* Sends a small response immediately if no other output is pending. True: sent, and the stream may be
 * closed. */
bool mk_h2_output_try_send_now(struct mk_h2_stream *s);
/* Sends the output of all streams, as far as possible now. */
void mk_h2_output_send(struct mk_h2 *h2);
/* Is output blocked only by the client's window or socket? */
bool mk_h2_output_is_blocked(const struct mk_h2 *h2);

#endif
