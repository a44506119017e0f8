/* SPDX-License-Identifier: Apache-2.0 */
/* The Destination header of WebDAV COPY and MOVE (RFC 4918, section 10.3). */
#ifndef MK_WEB_DESTINATION_HEADER_H
#define MK_WEB_DESTINATION_HEADER_H

#include "web/request_type.h"

/* Parses the header into *out, a target with a decoded path; NULL: there is no Destination. Returns 0 or a
 * status: 400 if the header is malformed and the method belongs to WebDAV (the methods of HTTP itself ignore
 * the header); 503 if out of memory. */
unsigned mk_destination_header_target(const struct mk_request *r, struct mk_request_target **out) MK_MUST_USE;

#endif
