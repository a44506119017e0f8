/* SPDX-License-Identifier: Apache-2.0 */
/* What we say on a connection of HTTP/2: the scratch that takes it, blocks of fields, small frames, the last
 * word. */
#ifndef MK_PROTO_H2_SAY_H
#define MK_PROTO_H2_SAY_H

#include "proto/h2.h"

/* Room for a frame in the scratch. */
struct mk_buf *mk_h2_say_room(struct mk_h2 *h2, size_t n);
/* The same for one of n bytes that is about the connection: whoever takes such frames is not any faster. */
struct mk_buf *mk_h2_say_small(struct mk_h2 *h2, size_t n);
/* Empties the scratch: to the socket, or to what is kept for it. False: the connection is lost. */
bool mk_h2_say_flush(struct mk_h2 *h2);

/* A frame with a block of fields, or several: leaves room for the head of the first, */
void mk_h2_say_open_block(struct mk_h2 *h2);
/* and fills it in, when the fields stand behind it; `from` is where it was opened. False: it did not fit, and
 * is not there.
 */
bool mk_h2_say_close_block(struct mk_h2 *h2, size_t from, uint32_t id, unsigned flags);
/* One that was closed is taken back; nothing may stand behind it. */
void mk_h2_say_retract_block(struct mk_h2 *h2, size_t from);

void mk_h2_say_reset(struct mk_h2 *h2, uint32_t stream, enum mk_h2_error error);
void mk_h2_say_window(struct mk_h2 *h2, uint32_t stream, uint32_t by);

/* The connection is broken: GOAWAY, and the end. `why` is counted. */
void mk_h2_say_failed(struct mk_h2 *h2, enum mk_h2_error error, enum mk_h2_reason why);
/* No new streams, in two steps (RFC 9113, section 6.8): we are about to leave, */
void mk_h2_say_leaving(struct mk_h2 *h2);
/* and, when the client has answered a PING and so has seen that: these are the last. */
void mk_h2_say_left(struct mk_h2 *h2);
/* The same at once, whatever it has seen. */
void mk_h2_say_farewell(struct mk_h2 *h2);

#endif
