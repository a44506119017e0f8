/* SPDX-License-Identifier: Apache-2.0 */
/* The request: method, path, parameters, query, headers and body. */
#ifndef DUDA_REQUEST_H
#define DUDA_REQUEST_H

#include <duda/log.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings live until the handler returns and are NUL-terminated. Functions whose names end in `_or` have a
 * fallback for absent values. */

/**
 * The request method as the client sent it.
 *
 *     if (mk_str_eq(duda_method(d), MK_STR("DELETE")))
 *         duda_log(d, MK_LOG_INFO, "deleted %s", duda_path(d).p);
 */
MK_API mk_str duda_method(struct duda_ctx *d);
/** The decoded path that is matched against the routes, without the prefix from [ROUTES]. An encoded slash
 * stays encoded: `%2F` is not a separator. */
MK_API mk_str duda_path(struct duda_ctx *d);

/** The decoded value of a path parameter: the text that `:name` or `*name` of the route's pattern matched;
 * absent if the pattern has no such name. An encoded slash stays `%2F`, and `%252F` becomes `%2F`, too. For
 * values that may contain slashes, use `*name`, whose slashes are not encoded, or a query parameter. */
MK_API mk_str duda_param(struct duda_ctx *d, const char *name);
/**
 * Reads a path parameter as a number. Returns false unless it is a decimal number, with an optional `-`,
 * that fits in the type; then *out is unchanged.
 *
 *     int64_t id; // of the route "/items/:id<int>"
 *     if (!duda_param_int(d, "id", &id))
 *         return 404;
 */
MK_API bool duda_param_int(struct duda_ctx *d, const char *name, int64_t *out);

/**
 * The decoded value of the first query parameter with that name (`+` is a space); absent if none exists.
 *
 *     mk_str q = duda_query(d, "q");
 *     return q.len ? search_items(d, q) : show_items(d);
 */
MK_API mk_str duda_query(struct duda_ctx *d, const char *name);
/**
 * The same value as a C string; `fallback` if it is absent or contains a NUL.
 *
 *     return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
 */
MK_API const char *duda_query_or(struct duda_ctx *d, const char *name, const char *fallback);
/**
 * Reads a query parameter as a number, as duda_param_int() does. Returns false, and leaves *out unchanged,
 * if the parameter is absent, or not a decimal number that fits.
 *
 *     int64_t year;
 *     if (!duda_query_int(d, "year", &year))
 *         return duda_problem(d, 400, "`year` must be a number");
 */
MK_API bool duda_query_int(struct duda_ctx *d, const char *name, int64_t *out);
/** Reads an optional query parameter as a number: an absent one becomes `fallback`, and the result is true.
 * Returns false, and leaves *out unchanged, if the parameter is not a decimal number that fits.
 *
 *     int64_t page;
 *     if (!duda_query_int_or(d, "page", 1, &page))
 *         return 400;
 */
MK_API bool duda_query_int_or(struct duda_ctx *d, const char *name, int64_t fallback, int64_t *out);

/** Iterates over the values of a repeated query parameter, such as `?tag=a&tag=b`: sets *value to the next
 * value, decoded, and returns true; returns false after the last one. *at is the position of the iterator:
 * set it to 0 before the first call. *value is valid until the handler returns; it is absent if memory is
 * exhausted.
 *
 *     mk_str tag;
 *     size_t at = 0;
 *     while (duda_query_next(d, "tag", &at, &tag))
 *         add_tag(&filter, tag);
 */
MK_API bool duda_query_next(struct duda_ctx *d, const char *name, size_t *at, mk_str *value) MK_API_MUST_USE;
/**
 * Reads the i-th query parameter, counted from 0, in the order of the URL. Returns false, and leaves *name
 * and *value unchanged, if `i` is out of range.
 *
 *     mk_str name, value;
 *     for (size_t i = 0; duda_query_at(d, i, &name, &value); i++)
 *         duda_log(d, MK_LOG_INFO, "%s is %s", name.p, value.p);
 */
MK_API bool duda_query_at(struct duda_ctx *d, size_t i, mk_str *name, mk_str *value) MK_API_MUST_USE;

/**
 * The value of the first request header with that name, such as "Authorization", ignoring case; absent if
 * there is none or memory is exhausted.
 *
 *     mk_str key = duda_header(d, "X-Api-Key");
 *     if (!key.p)
 *         return 401;
 */
MK_API mk_str duda_header(struct duda_ctx *d, const char *name);

/**
 * Reads the i-th request header, counted from 0, in the order received. Returns false, and leaves *name and
 * *value unchanged, if `i` is out of range. Headers that may occur several times, such as Forwarded, have one
 * entry for each occurrence.
 *
 *     mk_str name, value;
 *     for (size_t i = 0; duda_header_at(d, i, &name, &value); i++)
 *         duda_printf(d, "%s: %s\n", name.p, value.p);
 */
MK_API bool duda_header_at(struct duda_ctx *d, size_t i, mk_str *name, mk_str *value) MK_API_MUST_USE;

/**
 * The host that the client requested, without port; absent for an HTTP/1.0 client that sends no Host. The
 * client can send any name, so check it against your own list before you put it into a link, for example in
 * an email.
 *
 *     if (!mk_str_eq_nocase(duda_host(d), MK_STR("www.example.org")))
 *         return 421;
 */
MK_API mk_str duda_host(struct duda_ctx *d);
/**
 * "https" or "http": the scheme that the client uses, to this server or to a trusted proxy. Absent without a
 * request.
 *
 *     if (!mk_str_eq(duda_scheme(d), MK_STR("https")))
 *         return duda_problem(d, 403, "use https");
 */
MK_API mk_str duda_scheme(struct duda_ctx *d);
/**
 * The absolute URL of the request, with host, path and query as the client sent them:
 * "https://example.org:8443/shop/items?page=2". The path includes the prefix from [ROUTES]. Absent without a
 * host, or if memory is exhausted.
 *
 *     return duda_printf(d, "<link rel=canonical href=\"%s\">\n", duda_html_escape(d, duda_request_url(d)).p);
 */
MK_API mk_str duda_request_url(struct duda_ctx *d);

/**
 * The client IP address as text, without port, or `unix:`. For a request from a trusted proxy, this is the
 * address in X-Forwarded-For (`RealAddress` of [SECURITY]). Absent in a handler without a request, or if
 * memory is exhausted.
 *
 *     duda_log(d, MK_LOG_WARN, "wrong password from %s", duda_client_ip(d).p);
 */
MK_API mk_str duda_client_ip(struct duda_ctx *d);

/**
 * Reads the next bytes of the request body, and waits until some arrive. Returns the number of bytes written
 * to `buf`, 0 at the end of the body, or a negative errno value: -EMSGSIZE (the body exceeds the limit),
 * -EBADMSG (malformed), -ETIMEDOUT, -ECANCELED.
 *
 *     char buf[4096];
 *     ssize_t n;
 *     while ((n = duda_read(d, buf, sizeof buf)) > 0)
 *         count += (size_t)n;
 *     if (n < 0)
 *         return (int)n;
 */
MK_API ssize_t duda_read(struct duda_ctx *d, char *buf, size_t cap) MK_API_MUST_USE;
/**
 * Reads the whole request body, up to `max` bytes (-EMSGSIZE otherwise); *out lives until the handler
 * returns. Waits. Returns 0, an error of duda_read(), or -ENOMEM.
 *
 *     mk_str body;
 *     int e = duda_read_all(d, 1 << 20, &body);
 *     if (e)
 *         return e;
 */
MK_API int duda_read_all(struct duda_ctx *d, size_t max, mk_str *out) MK_API_MUST_USE;

/**
 * The server's request and response objects and the worker, for features that Duda's own functions do not
 * cover. Do not set the response body directly while the handler runs.
 *
 *     mk_str type = mk_request_media_type(duda_request(d), MK_STR("a.png"));
 */
MK_API struct mk_request *duda_request(struct duda_ctx *d);
MK_API struct mk_response *duda_response(struct duda_ctx *d);
MK_API struct mk_worker *duda_worker(struct duda_ctx *d);

/**
 * The request ID, for logs and for correlation across services: mk_request_id(). It is the X-Request-Id that
 * a trusted proxy has sent, or 32 random hexadecimal digits. For jobs and background tasks, the ID of the
 * job.
 *
 *     mk_str note = duda_sprintf(d, "Please report this error with the number %s.", duda_request_id(d).p);
 */
MK_API mk_str duda_request_id(struct duda_ctx *d);

/**
 * Records the reason for an error in words, such as the message from a backend, and returns `error`. If the
 * handler returns this error, or a status of 500 or above, the reason appears in the error log entry of the
 * request and on the error page of `monkey run`. Only the last reason of a request is kept, up to
 * DUDA_REASON_MAX bytes. Do not include parameter values or secrets.
 *
 *     return duda_reason(d, -EREMOTEIO, "the printer says: %s", text);
 */
MK_API int duda_reason(struct duda_ctx *d, int error, const char *fmt, ...) MK_API_PRINTF(3, 4);
/** Maximum length of a reason in bytes. */
enum { DUDA_REASON_MAX = 500 };

#ifdef __cplusplus
}
#endif

#endif
