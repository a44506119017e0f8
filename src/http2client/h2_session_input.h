/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the frames of a backend, and dispatches them to the streams. Nothing that a backend sends may harm
 * other streams than its own: memory, work and waiting are bounded. */
#ifndef MK_HTTP2CLIENT_H2_SESSION_INPUT_H
#define MK_HTTP2CLIENT_H2_SESSION_INPUT_H

#include "http2client/h2_session_type.h"

/* Size of mk_pool.http2_scratch: input, followed by the text of a head. */
enum {
    MK_H2_SESSION_INPUT_MAX = MK_H2_FRAME_HEAD + MK_H2_FRAME_MAX + MK_H2_SESSION_READ_MAX,
    MK_H2_SESSION_INPUT_SCRATCH = MK_H2_SESSION_INPUT_MAX + MK_RESPONSE_PARSER_HEAD_MAX,
};

/* Parses the bytes. Returns how many belong to complete frames; the caller keeps the rest. */
size_t mk_h2_session_input_parse(struct mk_h2_session *ss, mk_str bytes);
/* Reads and handles frames until no more arrive, too much output is unsent, or the session fails. True: there
 * is more to read after other connections have had their turn. */
bool mk_h2_session_input_read(struct mk_h2_session *ss);

#endif
