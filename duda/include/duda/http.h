/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to other servers over HTTP, as straight-line calls. */
#ifndef DUDA_HTTP_H
#define DUDA_HTTP_H

#include <duda/json.h>
#include <duda/service.h>
#include <monkey/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-http.so: `#define DUDA_USE "duda-http",` ahead of <duda.h>, and link
 * with `pkg-config --libs duda-http`. The configuration says where the server is; a handler cannot send a
 * request elsewhere, whatever a client says:
 *
 *     [HTTP_CLIENT]
 *         Name   rates
 *         Server 127.0.0.1:8000
 *
 * Connections are kept and shared by all handlers of the worker. With an [UPSTREAM] as Server, there may be
 * several servers, TLS, health checks, and limits.
 */

/** Limits: [HTTP_CLIENT] sections, and fields of a request. */
enum { DUDA_HTTP_SERVERS_MAX = 64, DUDA_HTTP_HEADERS_MAX = 64 };

/** A server: one [HTTP_CLIENT] section. */
struct duda_http_client;

/** The server of that Name; NULL names the first section. Valid as long as the worker. NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_http_client *duda_http_client(struct duda_ctx *d, const char *name);

/** A request; zero what is not wanted. */
struct duda_http_request {
    mk_str method; /**< absent: GET, or POST with content */
    mk_str target; /**< "/path?query"; absent: "/". Escape what comes from others: mk_url_escape() */
    const struct mk_header *fields; /**< besides Host and those of connection and framing */
    size_t n_fields;
    mk_str type;    /**< Content-Type of the content */
    mk_str content; /**< must live until the response is there */
    /** For duda_http_begin(): the server may answer while it reads, so an early response does not end the
     * sending of the content. */
    bool both_ways;
};

/** A response; all of it lives until the handler returns, and a NUL follows each text. */
struct duda_http_response {
    unsigned status;
    const struct mk_header *fields;
    size_t n_fields;
    mk_str content;
    mk_str problem; /**< after an error: what happened where */
    mk_str from;    /**< the Name of the server's section */
};

/**
 * Sends a request and waits for the whole response. Any status is a success of this function.
 *
 *     struct duda_http_response response;
 *     const struct duda_http_request request = {.target = MK_STR("/rates?of=EUR")};
 *     int e = duda_http_fetch(d, duda_http_client(d, "rates"), &request, &response);
 *     if (e)
 *         return e;
 *     if (response.status == 200)
 *         ...
 *
 * Errors, which response->problem explains: -ETIMEDOUT: no response within Timeout; -ECONNRESET, -EPIPE: the
 * connection ended before the response did; -ECONNREFUSED, -EHOSTUNREACH and others of connect(2); -ENOKEY:
 * we may not use its socket; -EBUSY: the server is overloaded; -EPROTO: not a valid response; -EMSGSIZE: its
 * content is longer than MaxBodySize; -EOVERFLOW: its head is too long; -EINVAL: the request is none, a line
 * end in a field for example; -E2BIG; -ENOMEM; or what waits answer. GET, HEAD, PUT, DELETE, OPTIONS and TRACE are
 * tried again with another server or connection, if the first one fails before its response begins.
 */
MK_API int duda_http_fetch(struct duda_ctx *d, struct duda_http_client *http,
                           const struct duda_http_request *request,
                           struct duda_http_response *response) MK_API_MUST_USE;
/** The first field of that name, ignoring case; absent if there is none. */
MK_API mk_str duda_http_header(const struct duda_http_response *response, mk_str name);

/** A response whose content is read piece by piece. */
struct duda_http_stream;

/** As duda_http_fetch(), but returns when the head is there; response->content stays absent. The stream lives until
 * the handler returns, or duda_http_close(). */
MK_API int duda_http_open(struct duda_ctx *d, struct duda_http_client *http,
                          const struct duda_http_request *request, struct duda_http_response *response,
                          struct duda_http_stream **out) MK_API_MUST_USE;
/** Reads content, and waits for it: the number of bytes, 0 at the end, or an error as above. */
MK_API ssize_t duda_http_read(struct duda_ctx *d, struct duda_http_stream *stream, char *room,
                              size_t cap) MK_API_MUST_USE;
/** Reads all that is left of the content to response->content, as duda_http_fetch() does, and ends the stream. */
MK_API int duda_http_read_all(struct duda_ctx *d, struct duda_http_stream *stream,
                              struct duda_http_response *response) MK_API_MUST_USE;
/** Ends it before the handler returns. A connection whose content was not read to its end is closed. */
MK_API void duda_http_close(struct duda_http_stream *stream);

/* ---- Requests whose content is sent piece by piece ---- */

/**
 * Begins a request without content, which duda_http_write() sends piece by piece: `length` bytes, or as many
 * as there will be: MK_LENGTH_UNKNOWN. Does not wait. *response is filled when the response is there, and by
 * errors: it must live as long as the stream.
 *
 *     struct duda_http_response response;
 *     struct duda_http_stream *stream;
 *     const struct duda_http_request request = {.method = MK_STR("PUT"), .target = MK_STR("/backup")};
 *     int e = duda_http_begin(d, http, &request, MK_LENGTH_UNKNOWN, &response, &stream);
 *     while (!e && (n = duda_read(d, room, sizeof room)) > 0)
 *         e = duda_http_write(d, stream, mk_str_of(room, (size_t)n));
 *     if (e >= 0 && n >= 0)
 *         e = duda_http_end(d, stream);
 *
 * Errors as of duda_http_fetch(), or -EINVAL: request->content is not absent.
 */
MK_API int duda_http_begin(struct duda_ctx *d, struct duda_http_client *http,
                           const struct duda_http_request *request, int64_t length,
                           struct duda_http_response *response,
                           struct duda_http_stream **out) MK_API_MUST_USE;
/**
 * Sends a piece. Waits while 32 KB are under way and the server takes no more, so content of any length needs
 * no memory; the server has Timeout to take more. 0: it is on its way, and need not be kept. 1: the server
 * has answered already, and wants no more: call duda_http_end(), which leaves out the rest, and look at the
 * status. Errors as of duda_http_fetch(), which end the stream, or -EINVAL: this is more than `length`.
 *
 * A request that may be repeated is sent once more as long as these 32 KB hold all of it.
 *
 * With both_ways it is 1 only if the server takes no more. Write and read in turn: a server that waits for
 * its response to be read does not read either, which ends with -ETIMEDOUT.
 */
MK_API int duda_http_write(struct duda_ctx *d, struct duda_http_stream *stream, mk_str piece) MK_API_MUST_USE;
/** With both_ways: waits for the head of the response, while the content goes on. */
MK_API int duda_http_head(struct duda_ctx *d, struct duda_http_stream *stream) MK_API_MUST_USE;
/** Ends the content, and waits for the head of the response, if it is not there yet; duda_http_read() reads
 * on. Errors as above, or -EBADMSG: the content is shorter than `length`. A handler that returns without this
 * has broken off: the server sees that the content is incomplete. */
MK_API int duda_http_end(struct duda_ctx *d, struct duda_http_stream *stream) MK_API_MUST_USE;

/* ---- JSON ---- */

/**
 * Reads the content of a response, which must be JSON, into a struct (see duda_json_read()), which lives
 * until the handler returns. 0; -EBADMSG: it is no JSON, or of another type; -EINVAL: it is not of this
 * shape; -EFBIG: a limit is exceeded; -ENOMEM. response->problem says what is wrong, with line and column.
 * The status is yours to look at.
 *
 *     struct rate rate = {0};
 *     int e = duda_http_fetch(d, http, &request, &response);
 *     e = e ? e : duda_http_json(d, &response, &rate_shape, &rate, NULL);
 *     if (e)
 *         return duda_problem(d, 502, "%.*s", MK_STR_ARG(response.problem));
 */
MK_API int duda_http_json(struct duda_ctx *d, struct duda_http_response *response,
                          const struct duda_schema *shape, void *out,
                          const struct duda_json_limits *limits) MK_API_MUST_USE;
/** The same for a list of structs, and for JSON of any shape. */
MK_API int duda_http_json_list(struct duda_ctx *d, struct duda_http_response *response,
                               const struct duda_schema *shape, void *list, size_t *n,
                               const struct duda_json_limits *limits) MK_API_MUST_USE;
MK_API int duda_http_json_value(struct duda_ctx *d, struct duda_http_response *response,
                                struct duda_value *out,
                                const struct duda_json_limits *limits) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
