/* SPDX-License-Identifier: Apache-2.0 */
/* The response: status, headers and body. */
#ifndef DUDA_RESPONSE_H
#define DUDA_RESPONSE_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* These functions return 0 or a negative errno value that the handler may return unchanged: -EALREADY (the
 * headers have been sent), -EINVAL, -ENOMEM, -ETIMEDOUT, -ECANCELED. */

/**
 * Sets the HTTP status code of the response, 200 to 599; the default is 200.
 *
 *     int e = duda_status(d, 202);
 *     return e ? e : duda_puts(d, "queued\n");
 */
MK_API int duda_status(struct duda_ctx *d, unsigned status);
/**
 * duda_header_set() sets a response header, and replaces all headers of that name; duda_header_add() adds a
 * header. They return -EINVAL for a value that contains a line break, and -EPERM for a `Set-Cookie` header
 * that names one of Duda's own cookies (see duda_cookie_set()).
 *
 *     int e = duda_status(d, 201);
 *     e = e ? e : duda_header_set(d, "Location", MK_STR("/items/7"));
 *     return e ? e : duda_puts(d, "created\n");
 */
MK_API int duda_header_set(struct duda_ctx *d, const char *name, mk_str value);
MK_API int duda_header_add(struct duda_ctx *d, const char *name, mk_str value);
/**
 * Sets the Content-Type; the default is "text/plain; charset=utf-8".
 *
 *     int e = duda_content_type(d, MK_STR("text/csv; charset=utf-8"));
 *     return e ? e : duda_puts(d, "id,name\n1,tea\n");
 */
MK_API int duda_content_type(struct duda_ctx *d, mk_str type);

/**
 * Appends to the response body. Duda buffers the body and sends it with its length when the handler returns.
 * Once the body exceeds 64 KB, the response starts, and these functions wait whenever the client reads too
 * slowly.
 *
 *     int e = duda_puts(d, "<ul>\n");
 *     for (size_t i = 0; i < n && !e; i++)
 *         e = duda_printf(d, "<li>%u\n", numbers[i]);
 *     return e ? e : duda_write(d, MK_STR("</ul>\n"));
 */
MK_API int duda_write(struct duda_ctx *d, mk_str text);
MK_API int duda_puts(struct duda_ctx *d, const char *text);
MK_API int duda_printf(struct duda_ctx *d, const char *fmt, ...) MK_API_PRINTF(2, 3);
/**
 * Streams the response: sends the headers and the body written so far. Waits until the client can take more
 * data.
 *
 *     int e = duda_puts(d, "working\n");
 *     e = e ? e : duda_flush(d); // the client sees the line now
 *     e = e ? e : duda_sleep(d, 1000);
 *     return e ? e : duda_puts(d, "done\n");
 */
MK_API int duda_flush(struct duda_ctx *d);

/**
 * Discards the unsent part of the body and the status; headers stay. Returns -EALREADY if the response has
 * started.
 *
 *     int e = write_report(d);
 *     if (e && !duda_response_has_started(d)) {
 *         (void)duda_response_reset(d); // an incomplete report must not be sent
 *         return duda_problem(d, 502, "the report is incomplete");
 *     }
 */
MK_API int duda_response_reset(struct duda_ctx *d);

/**
 * For middleware after duda_next(), DUDA_AFTER() functions and error handlers: get and set the result of the
 * handler.
 *
 *     int result = duda_next(d);
 *     if (result == -ETIMEDOUT)
 *         duda_set_result(d, 503);
 */
MK_API int duda_result(struct duda_ctx *d);
MK_API void duda_set_result(struct duda_ctx *d, int result);

/* The response so far. Middleware that runs after the handler can read it before it is sent. */

/**
 * The status that the client gets unless the result changes: if duda_result() is an error, the status of
 * that error, otherwise the status that the handler has set. After the response has started, the status that
 * was sent. 0 without a request.
 *
 *     int result = duda_next(d);
 *     if (duda_response_status(d) >= 500)
 *         duda_log(d, MK_LOG_ERROR, "%s has failed", duda_path(d).p);
 *     return result;
 */
MK_API unsigned duda_response_status(struct duda_ctx *d);
/**
 * The value of the first response header with that name; absent if it was not set. Valid until the headers
 * change. The headers that the server adds when it sends the response, such as Content-Length and Date, are
 * not included.
 *
 *     int result = duda_next(d);
 *     bool is_page = mk_str_starts(duda_response_header(d, "Content-Type"), MK_STR("text/html"));
 */
MK_API mk_str duda_response_header(struct duda_ctx *d, const char *name);
/**
 * The part of the body that has not been sent yet: the whole body, unless the response has started or the
 * body is a file. Valid until the next call that writes to the body.
 *
 *     int result = duda_next(d);
 *     mk_str body = duda_response_body(d);
 *     duda_log(d, MK_LOG_DEBUG, "%zu bytes: %.*s", body.len, MK_STR_ARG(mk_str_first(body, 100)));
 */
MK_API mk_str duda_response_body(struct duda_ctx *d);
/**
 * Returns whether the response has started: its status and headers can then no longer change.
 *
 *     int result = duda_next(d);
 *     if (!duda_response_has_started(d))
 *         (void)duda_header_set(d, "X-Version", MK_STR("7"));
 *     return result;
 */
MK_API bool duda_response_has_started(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
