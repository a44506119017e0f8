/* SPDX-License-Identifier: Apache-2.0 */
/* Receives HTTP/2 frames and dispatches them to their streams or to the connection. */
#ifndef MK_HTTP2_H2_INPUT_H
#define MK_HTTP2_H2_INPUT_H

#include "http2/h2_types.h"

/* Reads and handles frames until no more arrive, too much output is unsent, or the connection ends. */
void mk_h2_input_read(struct mk_h2 *h2);

#endif
