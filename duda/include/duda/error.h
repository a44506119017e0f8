/* SPDX-License-Identifier: Apache-2.0 */
/* Error handlers: functions that respond in place of the server's error pages. */
#ifndef DUDA_ERROR_H
#define DUDA_ERROR_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DUDA_ERROR() adds an error handler, a function of type duda_fn, for all later entries of the table and the
 * groups among them. Duda calls the innermost error handler first: that of the route's own group and, if a
 * table has several that apply, the last of them. In this service, errors of the API are problem details (RFC
 * 9457), and all other errors are plain text:
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
 * - errors that handlers and middleware return: a status of 400 or above, or a negative errno value, with or
 *   without duda_error(). These include the errors of duda_bind_json() and duda_csrf_check(). Error handlers
 *   are not called if the handler writes the error response itself, for example with duda_problem().
 * - errors of routes: 405, 413 (`.body_max`), 503 (CrashLimit), 504 (HandlerTimeout and `.deadline_ms`), and
 *   errors from plugins that protect a route, such as 401 and 429.
 * - 404 for paths below the group that match no route, unless another handler, such as the one for static
 *   files, responds.
 *
 * Error handlers are not called if the response has started, if the client has disconnected, if the request
 * cannot be parsed, or if the handler crashes, because the crash ends the worker.
 *
 * The response already has the status of the error, its headers, such as Allow (405), Retry-After or
 * WWW-Authenticate, and the headers that the handler has set, except those that describe a body. The error
 * handler writes the body, and returns:
 *
 * - 0, DUDA_HANDLED or a status from 200 to 399: the response is sent with the status of the error, unless
 *   the error handler has set another one. Responses to HEAD are sent without their body.
 * - DUDA_NEXT: Duda calls the next outer error handler. If there is none, the server sends its error page
 *   ([ERROR_PAGES], or the built-in page in the format of `ErrorFormat`).
 * - any other result: an error that replaces the first one, for the next outer error handler.
 *
 * Error handlers may wait for 5 seconds in total. After that, or if the server must respond at once because
 * HandlerTimeout has expired, a wait fails, and the client gets the server's error page. Data that middleware
 * has attached is still available, except after HandlerTimeout. Deferred functions (duda_defer()) have
 * already run. DUDA_AFTER() functions do not run again. Crashes of error handlers count separately from those
 * of the routes (CrashLimit). While the error handlers of a group are disabled, the server sends its own
 * error pages.
 */

struct duda_validation_errors;

/**
 * Fails the request with a status (400 to 599) and a description that the client may see. Return the result
 * from the handler or middleware. An error handler responds: it reads the description with
 * duda_error_detail(). If no error handler responds, a client that prefers HTML gets the server's error page,
 * and any other client gets problem details, as from duda_problem(). duda_bind_json(), duda_bind_query(),
 * duda_bind_form(), duda_csrf_check() and the handlers of duda/oidc.h fail in this way.
 *
 *     return duda_error(d, 409, "version %d has been replaced", 7);
 */
MK_API duda_verdict duda_error(struct duda_ctx *d, unsigned status, const char *fmt, ...)
    MK_API_PRINTF(3, 4) MK_API_MUST_USE;
/**
 * Like duda_error(), with validation errors: see duda_problem_errors(). Copies the struct, but not its
 * strings, which must stay valid until the response is sent.
 *
 *     struct duda_validation_errors errors;
 *     const struct mk_allocator heap = duda_allocator_of(d);
 *     int e = duda_json_read(duda_query(d, "filter"), &person_schema, &heap, NULL, &person, &errors);
 *     if (e == -EINVAL)
 *         return duda_error_invalid(d, 422, &errors);
 */
MK_API duda_verdict duda_error_invalid(struct duda_ctx *d, unsigned status,
                                       const struct duda_validation_errors *errors) MK_API_MUST_USE;
/**
 * For error handlers: the description that duda_error() has set; NULL: none. Escape it in HTML.
 *
 *     const char *detail = duda_error_detail(d);
 *     mk_str text = duda_html_escape(d, mk_str_from_c(detail ? detail : "Something went wrong."));
 *     return duda_html(d, duda_sprintf(d, "<h1>Error %u</h1><p>%.*s", duda_error_status(d), MK_STR_ARG(text)));
 */
MK_API const char *duda_error_detail(struct duda_ctx *d);
/**
 * For error handlers: the validation errors of duda_error_invalid(); NULL: none.
 *
 *     const struct duda_validation_errors *errors = duda_error_validation(d);
 *     for (size_t i = 0; errors && i < errors->n; i++)
 *         duda_printf(d, "%.*s\n", MK_STR_ARG(errors->items[i].message));
 */
MK_API const struct duda_validation_errors *duda_error_validation(struct duda_ctx *d);

/** The status of the error (400 to 599); 0 outside of error handlers. */
MK_API unsigned duda_error_status(struct duda_ctx *d);
/** The reason that duda_reason() has recorded, for logs and developers; NULL: none. Do not show it to
 * clients. The result of the handler is duda_result(), 0 if no handler has run. */
MK_API const char *duda_error_reason(struct duda_ctx *d);
/** An error handler that sends problem details (RFC 9457) with the title and a general description of the
 * status, or the description and the validation errors of duda_error(). Under `monkey run`, the description
 * is the recorded reason. */
MK_API duda_verdict duda_error_problem(struct duda_ctx *d);

#ifdef __cplusplus
}
#endif

#endif
