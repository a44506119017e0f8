/* SPDX-License-Identifier: Apache-2.0 */
/* The way in of HTTP/2: frames, one after the other, each to those whom it is for. */
#ifndef MK_PROTO_H2_INPUT_H
#define MK_PROTO_H2_INPUT_H

#include "proto/h2_stream.h"

/* Takes what is there, as far as the connection has a future. */
void mk_h2_input_read(struct mk_h2 *h2);

/* A whole block of fields on a stream (h2_head.c): a request, or its trailers. */
void mk_h2_head_take(struct mk_h2 *h2, uint32_t stream, mk_str block, bool ends);

#endif
