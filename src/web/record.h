/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a request when it is over: exactly one of these, whatever became of it. Written to logs,
 * counted. */
#ifndef MK_WEB_RECORD_H
#define MK_WEB_RECORD_H

#include <monkey/record.h>

#include "web/request.h"

struct mk_record {
    const struct mk_request *request; /* what is known of it: a request that died early has absent texts */
    unsigned status;                  /* 0: no response was begun */
    enum mk_ending ending;
    uint64_t content_sent; /* bytes after the head, transfer coding included */
    uint64_t duration_ms;
};

#endif
