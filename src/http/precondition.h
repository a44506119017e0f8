/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional requests (RFC 9110, section 13). */
#ifndef MK_HTTP_PRECONDITION_H
#define MK_HTTP_PRECONDITION_H

#include <monkey/http.h>

#include "http/header.h"

enum mk_precondition {
    MK_PRECONDITION_PASS,         /* process the request normally */
    MK_PRECONDITION_NOT_MODIFIED, /* respond with 304 */
    MK_PRECONDITION_FAILED,       /* respond with 412 */
};

#define MK_MODIFIED_NONE INT64_MIN

/* Validators of the current representation. */
struct mk_validators {
    mk_str etag;      /* with its quotes; absent: none */
    int64_t modified; /* Last-Modified in seconds since 1970; MK_MODIFIED_NONE: unknown */
};

/* Implements mk_precondition_check() for requests with at least one condition. */
enum mk_precondition mk_precondition_evaluate(const struct mk_headers *fields, enum mk_method method,
                                              const struct mk_validators *validators, int64_t now);

/* Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since in the order of section
 * 13.2.2. `validators` is NULL if there is no current representation (for example, for a PUT that creates
 * it). `now` is in seconds since 1970. */
static inline enum mk_precondition mk_precondition_check(const struct mk_headers *fields,
                                                         enum mk_method method,
                                                         const struct mk_validators *validators, int64_t now)
{
    const uint8_t *first = fields->first;
    if (MK_LIKELY(!(first[MK_HEADER_IF_MATCH] | first[MK_HEADER_IF_UNMODIFIED_SINCE] |
                    first[MK_HEADER_IF_NONE_MATCH] | first[MK_HEADER_IF_MODIFIED_SINCE])))
        return MK_PRECONDITION_PASS;
    return mk_precondition_evaluate(fields, method, validators, now);
}

/* May Range be applied? True without If-Range, or if its validator is strong and matches exactly. A date
 * counts as strong if the representation has no entity tag and the date is at least a second old (sections
 * 8.8.2.2, 13.1.5). */
bool mk_precondition_if_range_holds(const struct mk_headers *fields, const struct mk_validators *validators,
                                    int64_t now);

#endif
