/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a request when it is over: exactly one of these, whatever became of it. Written to logs,
 * counted. */
#ifndef MK_WEB_RECORD_H
#define MK_WEB_RECORD_H

#include <monkey/record.h>

#include "web/request.h"
#include "web/response.h"

struct mk_record {
    const struct mk_request *request;   /* what is known of it: a request that died early has absent texts */
    const struct mk_response *response; /* NULL: none was begun */
    unsigned status;                    /* 0: no response was begun */
    enum mk_ending ending;
    uint64_t content_sent; /* bytes after the head, transfer coding included */
    uint64_t duration_ms;
    uint64_t began_us; /* 0: nobody looked at a clock that tells */
};

#endif
