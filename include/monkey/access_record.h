/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a request when it is over, for on_done: logs and counters. */
#ifndef MONKEY_ACCESS_RECORD_H
#define MONKEY_ACCESS_RECORD_H

#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a request ended. */
enum mk_outcome {
    MK_OUTCOME_OK,             /**< the whole response was handed to the kernel */
    MK_OUTCOME_REJECTED,       /**< the peer broke the rules or a limit: answered with an error and closed */
    MK_OUTCOME_CLIENT_ABORTED, /**< the peer went away */
    MK_OUTCOME_TIMEOUT,        /**< a clock ran out */
    MK_OUTCOME_FAILED,         /**< the response could not be completed: a source failed, a file shrank */
    MK_OUTCOME_SHUTDOWN,       /**< the server stopped */
    MK_OUTCOMES
};

/** "done", "refused", ... */
MK_API const char *mk_outcome_name(enum mk_outcome ending);

/** What is left of a request when it is over: each leaves exactly one. Valid during the hook that gets it. */
struct mk_access_record;

/** What is known of the request: one that died early has absent texts. */
MK_API const struct mk_request *mk_access_record_request(const struct mk_access_record *r);
/** 0: no response was begun. */
MK_API unsigned mk_access_record_status(const struct mk_access_record *r);
/** What became of it. */
MK_API enum mk_outcome mk_access_record_outcome(const struct mk_access_record *r);
/** Bytes behind the head, transfer coding included. */
MK_API uint64_t mk_access_record_sent(const struct mk_access_record *r);
/** From the end of the request's head to now, in microseconds. */
MK_API uint64_t mk_access_record_duration_us(const struct mk_access_record *r);
/** A field of the response; absent if there is none, or no response. */
MK_API mk_str mk_access_record_header(const struct mk_access_record *r, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
