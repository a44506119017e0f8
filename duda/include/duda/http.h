/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to other servers over HTTP, as straight-line calls. */
#ifndef DUDA_HTTP_H
#define DUDA_HTTP_H

#include <duda/service.h>
#include <monkey/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-http.so: `#define DUDA_PACKAGES "duda-http",` ahead of <duda.h>, and link
 * with `pkg-config --libs duda-http`. The configuration says where the server is; a handler cannot send a
 * request elsewhere, whatever a client says:
 *
 *     [HTTP]
 *         Name   rates
 *         Server 127.0.0.1:8000
 *
 * Connections are kept and shared by all handlers of the worker. With an [UPSTREAM] as Server, there may be
 * several servers, TLS, health checks, and limits.
 */

/** Limits: [HTTP] sections, and fields of a request. */
enum { DUDA_HTTP_SERVERS_MAX = 64, DUDA_HTTP_FIELDS_MAX = 64 };

/** A server: one [HTTP] section. */
struct duda_http;

/** The server of that Name; NULL names the first section. Valid as long as the worker. NULL: there is none.
 */
MK_API struct duda_http *duda_http_find(const struct duda *d, const char *name);

/** A request; zero what is not wanted. */
struct duda_http_request {
    mk_str method; /**< absent: GET, or POST with content */
    mk_str target; /**< "/path?query"; absent: "/". Escape what comes from others: mk_url_escape() */
    const struct mk_field_line *fields; /**< besides Host and those of connection and framing */
    size_t n_fields;
    mk_str type;    /**< Content-Type of the content */
    mk_str content; /**< must live until the response is there */
};

/** A response; all of it lives until the handler returns. */
struct duda_http_response {
    unsigned status;
    const struct mk_field_line *fields;
    size_t n_fields;
    mk_str content; /**< a NUL follows */
    mk_str problem; /**< after an error: what happened where */
};

/**
 * Sends a request and waits for the whole response. Any status is a success of this function.
 *
 *     struct duda_http_response response;
 *     const struct duda_http_request request = {.target = MK_STR("/rates?of=EUR")};
 *     int e = duda_http(d, duda_http_find(d, "rates"), &request, &response);
 *     if (e)
 *         return e;
 *     if (response.status == 200)
 *         ...
 *
 * Errors, which response->problem explains: -ETIMEDOUT: no response within Timeout; -ECONNRESET, -EPIPE: the
 * connection ended before the response did; -ECONNREFUSED, -EHOSTUNREACH and others of connect(2); -EBUSY:
 * the server is overloaded; -EPROTO: not a valid response; -EMSGSIZE: its content is longer than MaxContent;
 * -EOVERFLOW: its head is too long; -EINVAL: the request is none, a line end in a field for example; -E2BIG;
 * -ENOMEM; or what waits answer. GET, HEAD, PUT, DELETE and OPTIONS are tried again with another server or
 * connection, if the first one fails before its response begins.
 */
MK_API int duda_http(struct duda *d, struct duda_http *http, const struct duda_http_request *request,
                     struct duda_http_response *response) MK_API_MUST_USE;
/** The first field of that name, ignoring case; absent if there is none. */
MK_API mk_str duda_http_field(const struct duda_http_response *response, mk_str name);

/** A response whose content is read piece by piece. */
struct duda_http_stream;

/** As duda_http(), but returns when the head is there; response->content stays absent. The stream lives until
 * the handler returns, or duda_http_close(). */
MK_API int duda_http_open(struct duda *d, struct duda_http *http, const struct duda_http_request *request,
                          struct duda_http_response *response, struct duda_http_stream **out) MK_API_MUST_USE;
/** Reads content, and waits for it: the number of bytes, 0 at the end, or an error as above. */
MK_API ssize_t duda_http_read(struct duda *d, struct duda_http_stream *stream, char *room,
                              size_t cap) MK_API_MUST_USE;
/** Ends it before the handler returns. A connection whose content was not read to its end is closed. */
MK_API void duda_http_close(struct duda_http_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
