/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of HTTP/2: heads and content of responses into frames, the most urgent first, as far as windows
 * and socket have room; and the small frames in between. */
#ifndef MK_PROTO_H2_OUTPUT_H
#define MK_PROTO_H2_OUTPUT_H

#include "proto/h2_stream.h"

/* A response that is small and meets nobody in its way is sent at once. True: it was, the stream may be gone.
 */
bool mk_h2_output_at_once(struct mk_h2_stream *s);
/* Sends for all streams that have something to send. */
void mk_h2_output_send(struct mk_h2 *h2);
/* Has somebody something to send that only the client's window, or its socket, does not take? */
bool mk_h2_output_is_blocked(const struct mk_h2 *h2);

#endif
