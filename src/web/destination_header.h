/* SPDX-License-Identifier: Apache-2.0 */
/* The Destination header of WebDAV COPY and MOVE (RFC 4918, section 10.3). */
#ifndef MK_WEB_DESTINATION_HEADER_H
#define MK_WEB_DESTINATION_HEADER_H

#include "web/request_type.h"

/* Parses the header into *out, a target with a decoded path; NULL: none. Returns 0 or a status: 400 if the
 * header is missing, repeated or malformed, unless the method is one of HTTP itself, which ignores the
 * header; 503 if out of memory. */
unsigned mk_destination_header_target(const struct mk_request *r, struct mk_request_target **out) MK_MUST_USE;

#endif
