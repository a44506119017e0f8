/* SPDX-License-Identifier: Apache-2.0 */
/* Trailers: fields behind the content (RFC 9110, section 6.5). */
#ifndef MK_HTTP_TRAILER_H
#define MK_HTTP_TRAILER_H

#include "base/str.h"

/* May a field of that name be a trailer? Not one that must be known before the content: how the message is
 * framed and routed, its sender, what is to be done with it, and what its content is (section 6.5.1). Also
 * false for names of HTTP/2 that begin with a colon, since they are no tokens. */
bool mk_trailer_is_allowed(mk_str name);

/* The next line of a trailer section that mk_chunked_decode found to be well-formed, moved over. False at its
 * end. */
bool mk_trailer_next(mk_str *section, mk_str *name, mk_str *value);

#endif
