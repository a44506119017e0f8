/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request of WebDAV moves or copies something to (RFC 4918, section 10.3). */
#ifndef MK_WEB_DESTINATION_HEADER_H
#define MK_WEB_DESTINATION_HEADER_H

#include "web/request_type.h"

/* *out: the target of the field, with its path decoded; NULL: there is none. 0, or a status: 400 when it is
 * malformed and the method is not one of HTTP itself, which has no use for the field; 503 without memory. */
unsigned mk_destination_header_target(const struct mk_request *r, struct mk_request_target **out) MK_MUST_USE;

#endif
