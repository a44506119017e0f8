/* SPDX-License-Identifier: Apache-2.0 */
/* Trailer fields, after the body (RFC 9110, section 6.5). */
#ifndef MK_HTTP_TRAILER_H
#define MK_HTTP_TRAILER_H

#include "base/str.h"

/* May a field with that name be a trailer? Not if it must be known before the body: for message framing,
 * routing, authentication, request modifiers or content format (section 6.5.1). Also false for HTTP/2 names
 * that begin with a colon, since they are not tokens. */
bool mk_trailer_is_allowed(mk_str name);

/* Returns the next line of a trailer section validated by mk_chunked_decode(), and advances. False at the
 * end. */
bool mk_trailer_next(mk_str *section, mk_str *name, mk_str *value);

#endif
