/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a finished request: exactly one for each, however it ended. It is written to logs and
 * counted. */
#ifndef MK_WEB_ACCESS_RECORD_H
#define MK_WEB_ACCESS_RECORD_H

#include <monkey/access_record.h>

#include "web/request_type.h"
#include "web/response.h"

struct mk_access_record {
    const struct mk_request *request;   /* what is known of it: a request that died early has absent texts */
    const struct mk_response *response; /* NULL: none was begun */
    unsigned status;                    /* 0: no response was begun */
    enum mk_outcome ending;
    uint64_t content_sent; /* bytes after the head, transfer coding included */
    uint64_t duration_ms;
    uint64_t began_us; /* 0: it was not measured */
};

#endif
