/* SPDX-License-Identifier: Apache-2.0 */
/* Error handlers: functions that respond in place of the server's error pages. */
#ifndef DUDA_ERROR_H
#define DUDA_ERROR_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DUDA_ERROR() in a table adds an error handler, a function of type duda_fn, for all later entries of the
 * table and the groups among them. The innermost error handler is called first: that of the group of the
 * route, and of several in one table, the last one. In this service, errors of the API are problem details
 * (RFC 9457), and all other errors have the layout of the service:
 *
 *     static int show_error(struct duda_ctx *d)
 *     {
 *         return duda_printf(d, "error %u\n", duda_error_status(d));
 *     }
 *
 *     DUDA_ROUTES(api, DUDA_ERROR(duda_error_problem), DUDA_GET("/items", list_items));
 *     DUDA_SERVICE(shop, DUDA_ERROR(show_error), DUDA_GET("/", home), DUDA_GROUP("/api", api));
 *
 * Error handlers respond to:
 *
 * - errors that handlers and middleware return: a status of 400 or above, or a negative errno value. A handler
 *   that writes the error response itself, for example with duda_problem(), responds without them.
 * - errors of routes: 405, 413 (`.body_max`), 504 (HandlerTimeout and `.deadline_ms`), 503 (CrashLimit), and
 *   the errors of plugins that protect a route, such as 401 and 429.
 * - 404 for paths below the group that match no route, if no other handler, such as the files of the virtual
 *   host, responds.
 *
 * They are not called once the response has started, when the client has disconnected, for requests that
 * cannot be parsed, and when the handler crashes, because the crash ends the worker.
 *
 * The response already has the status of the error and its headers, such as Allow (405), Retry-After or
 * WWW-Authenticate, and those that the handler has set, except headers that describe a body. The function
 * writes the body, and returns:
 *
 * - 0, DUDA_HANDLED or a status from 200 to 399: sends the response. The status is that of the error, unless
 *   the function sets another one. Responses to HEAD are sent without their body.
 * - DUDA_NEXT: the next outer error handler responds, and finally the server with its error page
 *   ([ERROR_PAGES], or the format of `ErrorFormat`).
 * - any other result is an error that replaces the first one; the next outer error handler responds to it.
 *
 * Error handlers may wait, for 5 seconds in total. After that, and if the server must respond at once because
 * HandlerTimeout has expired, a wait fails, and the client gets the page of the server. Data that middleware
 * attached is still there, except after HandlerTimeout; deferred functions have run. DUDA_AFTER() functions
 * do not run again. Crashes of error handlers count separately from those of the routes (CrashLimit): while
 * the error handlers of a group are disabled, the server sends its own pages.
 */

/** The status of the error (400 to 599). 0 outside of error handlers. */
MK_API unsigned duda_error_status(struct duda_ctx *d);
/** The reason that duda_reason() has recorded, for logs and developers: do not show it to clients. NULL: none.
 * duda_result() returns the result of the handler, 0 if no handler has run. */
MK_API const char *duda_error_reason(struct duda_ctx *d);
/** An error handler that sends problem details (RFC 9457) with the title and a general description of the
 * status. `monkey run` describes the reason instead. */
MK_API duda_verdict duda_error_problem(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
