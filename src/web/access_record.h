/* SPDX-License-Identifier: Apache-2.0 */
/* Access-log entry of a finished request, whatever its outcome. The on_done hooks and access logs receive
 * it. */
#ifndef MK_WEB_ACCESS_RECORD_H
#define MK_WEB_ACCESS_RECORD_H

#include <monkey/access_record.h>

#include "web/request_type.h"
#include "web/response.h"

struct mk_access_record {
    const struct mk_request *request;   /* the parsed part of the request; if the request failed early, the
                                         * strings that were not parsed are absent */
    const struct mk_response *response; /* NULL: no response was started */
    unsigned status;                    /* 0: no response was started */
    enum mk_outcome outcome;
    const char
        *reason; /* set by mk_request_set_reason(); else the name of the plugin that has responded; NULL:
                         * neither */
    bool is_reason_set;
    uint64_t content_received;
    uint64_t content_sent; /* bytes sent after the head, including transfer coding */
    uint64_t duration_ms;
    uint64_t began_us; /* 0: not measured */
};

#endif
