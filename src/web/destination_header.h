/* SPDX-License-Identifier: Apache-2.0 */
/* The Destination header of WebDAV COPY and MOVE (RFC 4918, section 10.3). */
#ifndef MK_WEB_DESTINATION_HEADER_H
#define MK_WEB_DESTINATION_HEADER_H

#include "web/request_type.h"

/* *out: the Destination as a target with decoded path; NULL: none. 0, or a status: 400 if it is malformed and
 * the method is a WebDAV one (HTTP's own methods ignore the header); 503 if out of memory. */
unsigned mk_destination_header_target(const struct mk_request *r, struct mk_request_target **out) MK_MUST_USE;

#endif
