/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a request when it is over: exactly one of these, whatever became of it. Written to logs,
 * counted. */
#ifndef MK_WEB_RECORD_H
#define MK_WEB_RECORD_H

#include "web/request.h"

/* How a request ended. */
enum mk_ending {
    MK_ENDING_DONE,     /* the whole response was handed to the kernel */
    MK_ENDING_REFUSED,  /* the peer broke the rules or a limit: answered with an error and closed */
    MK_ENDING_GONE,     /* the peer went away */
    MK_ENDING_TIMEOUT,  /* a clock ran out */
    MK_ENDING_ABORTED,  /* the response could not be completed: a source failed, a file shrank */
    MK_ENDING_SHUTDOWN, /* the server stopped */
    MK_ENDINGS
};

extern const char *const mk_ending_names[MK_ENDINGS];

struct mk_record {
    const struct mk_request *request; /* what is known of it: a request that died early has absent texts */
    unsigned status;                  /* 0: no response was begun */
    enum mk_ending ending;
    uint64_t content_sent; /* bytes after the head, transfer coding included */
    uint64_t duration_ms;
};

#endif
