/* SPDX-License-Identifier: Apache-2.0 */
/* What the client asked for: method, path, parameters, query, fields and content. */
#ifndef DUDA_REQUEST_H
#define DUDA_REQUEST_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts live until the handler returns, and a NUL follows each. Functions that end with `_or` answer a string
 * of C: the given one when there is none, or when the client has put a NUL inside. */

/** The method as the client wrote it. */
MK_API mk_str duda_method(struct duda_ctx *d);
/** The decoded path, as routes see it: without what [ROUTES] has put ahead of the service. */
MK_API mk_str duda_path(struct duda_ctx *d);

/** What `:name` or `*name` of the route's pattern matched, decoded; absent if the pattern has no such name.
 */
MK_API mk_str duda_param(const struct duda_ctx *d, const char *name);
/** The same as a number. False unless it is a decimal number, with an optional `-`, that fits. */
MK_API bool duda_param_int(const struct duda_ctx *d, const char *name, int64_t *out);

/** The value of the first such name in the query, decoded (`+` is a space); absent if there is none. */
MK_API mk_str duda_query(struct duda_ctx *d, const char *name);
MK_API const char *duda_query_or(struct duda_ctx *d, const char *name, const char *otherwise);
/** `out` keeps what it has, and the result is true, when the name is not there; false when it is there and is
 * no decimal number that fits. */
MK_API bool duda_query_int(struct duda_ctx *d, const char *name, int64_t *out);

/** The value of the first field of that name, ignoring case; absent if there is none, or memory is out. */
MK_API mk_str duda_header(struct duda_ctx *d, const char *name);

/**
 * Reads the next bytes of the content; waits for them. Answers how many were written to `room`, 0 at the end,
 * or a negated errno value: -EMSGSIZE (more than the limit), -EBADMSG (malformed), -ETIMEDOUT, -ECANCELED.
 *
 *     char room[4096];
 *     ssize_t n;
 *     while ((n = duda_read(d, room, sizeof room)) > 0)
 *         count += (size_t)n;
 *     if (n < 0)
 *         return (int)n;
 */
MK_API ssize_t duda_read(struct duda_ctx *d, char *room, size_t cap) MK_API_MUST_USE;
/** The whole content, at most `max` bytes (-EMSGSIZE); *out lives until the handler returns. Waits. 0 or as
 * duda_read(), -ENOMEM. */
MK_API int duda_read_all(struct duda_ctx *d, size_t max, mk_str *out) MK_API_MUST_USE;

/** The request and the response of the server, and its worker: for everything that Duda has no function for.
 * While the handler runs, do not set content of the response by yourself. */
MK_API struct mk_request *duda_request(const struct duda_ctx *d);
MK_API struct mk_response *duda_response(const struct duda_ctx *d);
MK_API struct mk_worker *duda_worker(const struct duda_ctx *d);

/** What tells this request from all others, in logs and for other services: the X-Request-Id of the client,
 * if it has up to 64 letters, digits, `.`, `_`, `-`, or else 16 random digits. */
MK_API mk_str duda_request_id(struct duda_ctx *d);
/** Into the error log of the host, with what the request is, and its duda_request_id(). */
MK_API void duda_log(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(3, 4);

/** For functions that fail: why, in words, such as the server's own message. If the handler returns that very
 * error, or a status from 500 on, the text is part of the one line that the error log has for it, and of the
 * page that `monkey run` shows. The last reason of a request counts; it has at most DUDA_REASON_MAX bytes.
 * Neither values of parameters nor secrets belong into it. Answers `error`:
 *
 *     return duda_reason(d, -EREMOTEIO, "the printer says: %s", text);
 */
MK_API int duda_reason(struct duda_ctx *d, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);
/** The most bytes of a reason. */
enum { DUDA_REASON_MAX = 500 };

#ifdef __cplusplus
}
#endif

#endif
