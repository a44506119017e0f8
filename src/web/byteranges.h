/* SPDX-License-Identifier: Apache-2.0 */
/* Byte ranges: 206 with one or more ranges, and 416 (RFC 9110, section 14). */
#ifndef MK_WEB_BYTERANGES_H
#define MK_WEB_BYTERANGES_H

#include <monkey/handler.h>

#include "http/precondition.h"
#include "http/range.h"
#include "web/request_type.h"

/* A request with more ranges is considered abuse: Range is ignored. */
enum { MK_BYTERANGES_MAX = 16 };

/* Stores the ranges that the request asks for in `ranges`, which holds MK_BYTERANGES_MAX ranges. `size`:
 * length of the representation in bytes. `coded`: it is compressed. Returns the number of ranges; 0: ignore
 * Range and send the whole representation; -416: no range can be satisfied. */
int mk_byteranges_select(const struct mk_request *request, const struct mk_validators *validators,
                         uint64_t size, bool coded, struct mk_range *ranges) MK_MUST_USE;

/* Responds with 416 and the size. */
enum mk_verdict mk_byteranges_refuse(struct mk_response *response, uint64_t size);

/* Replaces the complete body, which must consist of parts, with these ranges of it, and sets status 206. The
 * other headers must be complete. Returns false if out of memory. */
bool mk_byteranges_apply(struct mk_response *response, const struct mk_range *ranges, unsigned n) MK_MUST_USE;

#endif
