/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of HTTP/2 in the corridor: from its request to the response that is handed over to be sent. */
#ifndef MK_PROTO_H2_FLOW_H
#define MK_PROTO_H2_FLOW_H

#include "proto/h2_stream.h"

/* Goes on with it as far as it can go; it may be gone when this returns. */
void mk_h2_flow_run(struct mk_h2_stream *s);
/* Answers with an error at once. */
void mk_h2_flow_refuse(struct mk_h2_stream *s, unsigned status);

#endif
