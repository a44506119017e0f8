/* SPDX-License-Identifier: Apache-2.0 */
/* Access records: summaries of finished requests, passed to on_done for logging and metrics. */
#ifndef MONKEY_ACCESS_RECORD_H
#define MONKEY_ACCESS_RECORD_H

#include <monkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a request ended. Later releases may add outcomes. */
enum mk_outcome {
    MK_OUTCOME_OK,             /**< the kernel accepted the whole response */
    MK_OUTCOME_REJECTED,       /**< the client violated the protocol or a limit: the server sent an error and
                                    closed the connection */
    MK_OUTCOME_CLIENT_ABORTED, /**< the client disconnected */
    MK_OUTCOME_TIMEOUT,        /**< a timeout expired */
    MK_OUTCOME_FAILED,         /**< the response could not be completed: its body source failed, or its
                                    file shrank */
    MK_OUTCOME_SHUTDOWN,       /**< the server stopped */
};

/** The name of an outcome in logs and metrics: "ok", "rejected", "client_aborted", "timeout", "failed" or
 * "shutdown". */
MK_API const char *mk_outcome_name(enum mk_outcome outcome);

/** The summary of a finished request. Every request produces exactly one. Valid during the hook that
 * receives it. */
struct mk_access_record;

/** The request itself. Strings that were not received before the request ended are absent. */
MK_API const struct mk_request *mk_access_record_request(const struct mk_access_record *record);
/** The response status; 0 if no response was started. */
MK_API unsigned mk_access_record_status(const struct mk_access_record *record);
/** How the request ended. */
MK_API enum mk_outcome mk_access_record_outcome(const struct mk_access_record *record);
/** Bytes sent after the response head, including transfer coding. */
MK_API uint64_t mk_access_record_sent(const struct mk_access_record *record);
/** Why the request ended as it did, as one word: the reason set by mk_request_set_reason(); else the name of
 * the outcome, unless it is "ok"; else the name of the plugin whose on_request hook responded, such as
 * "limits" or "auth"; else "ok". Valid as long as the record. */
MK_API const char *mk_access_record_reason(const struct mk_access_record *record);
/** Bytes of the request body that were received, without transfer coding. */
MK_API uint64_t mk_access_record_received(const struct mk_access_record *record);
/** Microseconds since the end of the request head. */
MK_API uint64_t mk_access_record_duration_us(const struct mk_access_record *record);
/** A response header; absent if there is no such header or no response. */
MK_API mk_str mk_access_record_header(const struct mk_access_record *record, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
