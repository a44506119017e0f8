/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a request when it is over, for on_done: logs and counters. */
#ifndef MONKEY_RECORD_H
#define MONKEY_RECORD_H

#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a request ended. */
enum mk_ending {
    MK_ENDING_DONE,     /**< the whole response was handed to the kernel */
    MK_ENDING_REFUSED,  /**< the peer broke the rules or a limit: answered with an error and closed */
    MK_ENDING_GONE,     /**< the peer went away */
    MK_ENDING_TIMEOUT,  /**< a clock ran out */
    MK_ENDING_ABORTED,  /**< the response could not be completed: a source failed, a file shrank */
    MK_ENDING_SHUTDOWN, /**< the server stopped */
    MK_ENDINGS
};

/** "done", "refused", ... */
MK_API const char *mk_ending_name(enum mk_ending ending);

/** What is left of a request when it is over: each leaves exactly one. Valid during the hook that gets it. */
struct mk_record;

/** What is known of the request: one that died early has absent texts. */
MK_API const struct mk_request *mk_record_request(const struct mk_record *r);
/** 0: no response was begun. */
MK_API unsigned mk_record_status(const struct mk_record *r);
/** What became of it. */
MK_API enum mk_ending mk_record_ending(const struct mk_record *r);
/** Bytes behind the head, transfer coding included. */
MK_API uint64_t mk_record_sent(const struct mk_record *r);
/** From the end of the request's head to now, in microseconds. */
MK_API uint64_t mk_record_duration_us(const struct mk_record *r);
/** A field of the response; absent if there is none, or no response. */
MK_API mk_str mk_record_field(const struct mk_record *r, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
