/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP client: sequential calls that suspend only the handler. */
#ifndef DUDA_HTTP_H
#define DUDA_HTTP_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/json.h>
#include <duda/service.h>
#include <monkey/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-http.so: `#define DUDA_USE "duda-http"` before including <duda.h>, and
 * link with `pkg-config --libs duda-http`. The configuration names the servers; a handler cannot send
 * requests anywhere else, no matter what a client sends:
 *
 *     [HTTP_CLIENT]
 *         Name   rates
 *         Server 127.0.0.1:8000
 *
 * All handlers of a worker share a pool of keep-alive connections. An [UPSTREAM] as Server adds multiple
 * servers, TLS, health checks and limits. With AllowHosts, services may also send requests to URLs on other
 * hosts (duda_http_request.url):
 *
 *     [HTTP_CLIENT]
 *         Name       web
 *         AllowHosts api.example.org *.example.net
 *
 * The names of these hosts must resolve to public addresses, so that no client can use a service to reach an
 * internal server; AllowPrivate lists exceptions.
 */

/** Limits: [HTTP_CLIENT] sections, and headers of a request. */
enum { DUDA_HTTP_SERVERS_MAX = 64, DUDA_HTTP_HEADERS_MAX = 64 };

/** A client for one server: one [HTTP_CLIENT] section. */
struct duda_http_client;

/** Returns the client with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The client is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is
 * no such section; functions called with NULL return -ENODEV, which becomes status 503. */
MK_API struct duda_http_client *duda_http_find(struct duda_ctx *d, const char *name);
/**
 * Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early.
 *
 *     static int start(struct mk_worker *worker)
 *     {
 *         return duda_http_of(worker, "rates") ? 0 : -ENODEV;
 *     }
 */
MK_API struct duda_http_client *duda_http_of(struct mk_worker *worker, const char *name);
/** Checks that an [HTTP_CLIENT] section has this Name. Call this function in load() of a plugin whose `needs`
 * lists "duda-http" and whose `section` has `key`, such as `HttpClient`. If there is no such [HTTP_CLIENT],
 * reports an error at the key and suggests a similar name. */
MK_API void duda_http_require(struct mk_config *config, const void *section, const char *key, mk_str name);

/** A request; leave unused members zero. */
struct duda_http_request {
    mk_str method; /**< absent: GET, or POST if there is a body */
    mk_str target; /**< "/path?query"; absent: "/". Escape untrusted parts with mk_url_escape() */
    const struct mk_header *headers; /**< headers other than Host and the connection and framing headers */
    size_t n_headers;
    mk_str content_type; /**< Content-Type of the body */
    mk_str body;         /**< request body; must live until the response arrives */
    /** For duda_http_begin(): full duplex. The server may respond while it is still reading, so an early
     * response does not end the request body. */
    bool full_duplex;
    /** Time limit of the whole exchange, from the call to the last byte of the response; it replaces Timeout
     * of the section. 0: only Timeout applies. */
    uint32_t timeout_ms;
    /** Maximum number of redirects to follow; 0: none, so a redirect is returned as the response. Must be 0
     * for duda_http_begin(). */
    unsigned max_redirects;
    /** Sends Accept-Encoding, unless `headers` contains it, and decodes a response with the Content-Encoding
     * gzip or deflate; its headers then lack Content-Encoding. MaxBodySize limits the decoded body. */
    bool decompress;
    bool allow_downgrade; /**< also follow redirects from https to http */
    /** An absolute URL (http or https) instead of `target`: on the section's Server, or on a host in
     * AllowHosts. */
    mk_str url;
    /** A JSON body instead of `body`: duda_value_struct(&schema, &object), duda_value_members(...), or any
     * other value; null: no JSON body. Its Content-Type is application/json, unless content_type or `headers`
     * sets another one. The value need not outlive the call. Must be null for duda_http_begin(). */
    struct duda_value json;
};

/** A response. It lives until the handler returns, and all strings are NUL-terminated. */
struct duda_http_response {
    unsigned status;
    const struct mk_header *headers;
    size_t n_headers;
    mk_str body;
    mk_str error;         /**< after an error: a description of the error */
    mk_str server;        /**< Name of the [HTTP_CLIENT] section */
    mk_str url;           /**< the absolute URL of the response: after redirects, that of the last request */
    uint64_t reserved[4]; /**< for later releases */
};

/**
 * Sends an HTTP request to another server with an HTTP client, and waits for the complete response. Any
 * HTTP status counts as success.
 *
 *     struct duda_http_response response;
 *     const struct duda_http_request request = {.target = MK_STR("/rates?of=EUR")};
 *     int e = duda_http_fetch(d, duda_http_find(d, "rates"), &request, &response);
 *     if (e)
 *         return e;
 *     if (response.status == 200)
 *         ...
 *
 * A JSON body is a value, or a struct with a schema:
 *
 *     const struct duda_http_request request = {
 *         .target = MK_STR("/orders"),
 *         .json = duda_value_members({"item", duda_value_cstr("tea")}, {"count", duda_value_integer(2)})};
 *     const struct duda_http_request update = {
 *         .method = MK_STR("PUT"), .target = MK_STR("/people/7"), .json = duda_value_struct(&person_schema, &person)};
 *
 * The request has the header X-Request-Id with duda_request_id(), unless request->headers contains this
 * header or SendRequestId is off.
 *
 * With max_redirects, the function follows the Location of responses with the status 301, 302, 303, 307 or
 * 308. As in browsers, 303 changes all methods except HEAD to GET without a body; 301 and 302 change only
 * POST; 307 and 308 repeat the method and the body. If the scheme, host or port changes, the function omits
 * Authorization, Cookie and Proxy-Authorization, and sends all other headers. Errors of redirects: -ELOOP:
 * more than max_redirects; -EPROTO: an invalid Location; -EPERM: a redirect to a server that the section does
 * not allow, or from https to http.
 *
 * Errors, which response->error describes: -ETIMEDOUT: no response within Timeout, or no complete response
 * within request->timeout_ms; -ECONNRESET, -EPIPE: the connection closed before the response was complete;
 * -EHOSTUNREACH: the name of the server does not resolve, or no server is up; -ECONNREFUSED and other errors
 * of connect(2); -ENOKEY: no permission to use the server's socket; -EPERM: the section does not allow the
 * host of request->url, or its address; -EBUSY: the server is overloaded, or too many hosts are in use;
 * -EPROTO: an invalid response, or a malformed compressed body; -EMSGSIZE: the body exceeds MaxBodySize, or
 * the request has more than DUDA_HTTP_HEADERS_MAX headers; -EINVAL: the request is invalid, for example
 * because a header contains a line break, the URL contains a user name, or both `body` and `json` are set;
 * -ENOMEM; or the error of a failed
 * wait. Idempotent requests (GET, HEAD, PUT, DELETE, OPTIONS, TRACE) are retried on another server or
 * connection if the first one fails before its response starts.
 */
MK_API int duda_http_fetch_sized(struct duda_ctx *d, struct duda_http_client *http,
                                 const struct duda_http_request *request, size_t request_size,
                                 struct duda_http_response *response) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_http_fetch(struct duda_ctx *d, struct duda_http_client *http,
                                                  const struct duda_http_request *request,
                                                  struct duda_http_response *response)
{
    return duda_http_fetch_sized(d, http, request, sizeof *request, response);
}
/**
 * The first header with that name, ignoring case; absent if there is none.
 *
 *     mk_str etag = duda_http_header(&response, "ETag");
 *     if (etag.p)
 *         duda_log(d, MK_LOG_INFO, "version %s", etag.p);
 */
MK_API mk_str duda_http_header(const struct duda_http_response *response, const char *name);

/** A response whose body is read incrementally. */
struct duda_http_stream;

/** Like duda_http_fetch(), but returns once the headers have arrived; response->body stays absent. The
 * stream lives until the handler returns or calls duda_http_close(). */
MK_API int duda_http_open_sized(struct duda_ctx *d, struct duda_http_client *http,
                                const struct duda_http_request *request, size_t request_size,
                                struct duda_http_response *response,
                                struct duda_http_stream **out) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_http_open(struct duda_ctx *d, struct duda_http_client *http,
                                                 const struct duda_http_request *request,
                                                 struct duda_http_response *response,
                                                 struct duda_http_stream **out)
{
    return duda_http_open_sized(d, http, request, sizeof *request, response, out);
}
/**
 * Reads the next bytes of the response body, and waits until some arrive. Returns the number of bytes, 0 at
 * the end, or an error as above.
 *
 *     struct duda_http_stream *stream;
 *     int e = duda_http_open(d, http, &request, &response, &stream);
 *     while (!e && (n = duda_http_read(d, stream, buf, sizeof buf)) > 0)
 *         e = duda_write(d, mk_str_of(buf, (size_t)n)); // as fast as the client reads
 *     return n < 0 ? (int)n : e;
 */
MK_API ssize_t duda_http_read(struct duda_ctx *d, struct duda_http_stream *stream, char *buf,
                              size_t cap) MK_API_MUST_USE;
/** Reads the rest of the body into response->body, and closes the stream. Waits. Returns 0 or an error of
 * duda_http_fetch(). */
MK_API int duda_http_read_all(struct duda_ctx *d, struct duda_http_stream *stream,
                              struct duda_http_response *response) MK_API_MUST_USE;
/** Closes the stream before the handler returns. If the body has not been read to the end, this also closes
 * the connection. */
MK_API void duda_http_close(struct duda_http_stream *stream);

/* ---- Streaming the request body ---- */

/**
 * Starts a request whose body duda_http_write() sends in pieces: `length` bytes in total, or
 * MK_LENGTH_UNKNOWN. Does not wait. *response is filled in when the response arrives or an error occurs, so
 * it must live as long as the stream.
 *
 *     struct duda_http_response response;
 *     struct duda_http_stream *stream;
 *     const struct duda_http_request request = {.method = MK_STR("PUT"), .target = MK_STR("/backup")};
 *     int e = duda_http_begin(d, http, &request, MK_LENGTH_UNKNOWN, &response, &stream);
 *     while (!e && (n = duda_read(d, buf, sizeof buf)) > 0)
 *         e = duda_http_write(d, stream, mk_str_of(buf, (size_t)n));
 *     if (e >= 0 && n >= 0)
 *         e = duda_http_end(d, stream);
 *
 * Returns the errors of duda_http_fetch(), or -EINVAL: request->body, request->json or request->max_redirects
 * is set.
 */
MK_API int duda_http_begin_sized(struct duda_ctx *d, struct duda_http_client *http,
                                 const struct duda_http_request *request, size_t request_size, int64_t length,
                                 struct duda_http_response *response,
                                 struct duda_http_stream **out) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_http_begin(struct duda_ctx *d, struct duda_http_client *http,
                                                  const struct duda_http_request *request, int64_t length,
                                                  struct duda_http_response *response,
                                                  struct duda_http_stream **out)
{
    return duda_http_begin_sized(d, http, request, sizeof *request, length, response, out);
}
/**
 * Sends a piece of the body. Waits while 32 KB are buffered and the server accepts no more, so a body of any
 * length takes little memory; the server must accept more within Timeout. Returns 0: the piece is queued, and
 * the caller need not keep it. Returns 1: the server has already responded and needs no more data; call
 * duda_http_end(), which skips the rest, and check the status. Other results are the errors of
 * duda_http_fetch(), which end the stream, or -EINVAL: the body exceeds `length`.
 *
 * An idempotent request can be retried as long as the buffered 32 KB hold the whole body.
 *
 * With full_duplex, the result is 1 only if the server accepts no more data. Alternate between writing and
 * reading: a server whose response is not read also stops reading, and the call returns -ETIMEDOUT.
 */
MK_API int duda_http_write(struct duda_ctx *d, struct duda_http_stream *stream, mk_str data) MK_API_MUST_USE;
/** With full_duplex: waits for the response headers without ending the request body. Returns 0 or an error of
 * duda_http_fetch(). */
MK_API int duda_http_head(struct duda_ctx *d, struct duda_http_stream *stream) MK_API_MUST_USE;
/** Ends the request body and waits for the response headers, unless they have already arrived; read the
 * response with duda_http_read(). Returns errors as above, or -EBADMSG: the body is shorter than `length`. A
 * handler that returns without this call aborts the request, so that the server detects the incomplete
 * body. */
MK_API int duda_http_end(struct duda_ctx *d, struct duda_http_stream *stream) MK_API_MUST_USE;

/* ---- JSON ---- */

/**
 * Parses the body of a response, which must be JSON, into a struct (see duda_json_read()) that lives until
 * the handler returns. Returns 0; -EBADMSG: not JSON, or of another media type; -EINVAL: does not match the
 * schema; -EMSGSIZE: a limit is exceeded; -ENOMEM. response->error describes the error with line and column.
 * The caller checks the status.
 *
 *     struct rate rate = {0};
 *     int e = duda_http_fetch(d, http, &request, &response);
 *     e = e ? e : duda_http_json(d, &response, &rate_schema, &rate, NULL);
 *     if (e)
 *         return duda_problem(d, 502, "%.*s", MK_STR_ARG(response.error));
 */
MK_API int duda_http_json_checked(struct duda_ctx *d, struct duda_http_response *response,
                                  const struct duda_schema *schema, void *out, size_t size,
                                  const struct mk_json_limits *limits) MK_API_MUST_USE;
/**
 * Like duda_http_json(), but parses a JSON array of structs (see duda_json_read_list()). `list` is the
 * address of a pointer to the struct, which the function sets to the array.
 *
 *     struct person *people;
 *     size_t n_people;
 *     int e = duda_http_json_list(d, &response, &person_schema, &people, &n_people, NULL);
 *     for (size_t i = 0; !e && i < n_people; i++)
 *         e = duda_printf(d, "%s\n", people[i].name.p);
 */
MK_API int duda_http_json_list_checked(struct duda_ctx *d, struct duda_http_response *response,
                                       const struct duda_schema *schema, void *list, size_t size, size_t *n,
                                       const struct mk_json_limits *limits) MK_API_MUST_USE;
#ifndef __cplusplus
/**
 * Call the functions above with the size of the struct. They return -EFAULT if the schema describes a struct
 * of another size.
 *
 *     struct duda_value value, price;
 *     int e = duda_http_json_value(d, &response, &value, NULL);
 *     if (!e && duda_value_member(&value, MK_STR("price"), &price) && price.kind == DUDA_VALUE_INTEGER)
 *         return duda_printf(d, "%lld\n", (long long)price.of.integer);
 */
#define duda_http_json(d, response, schema, out, ...)                                                        \
    duda_http_json_checked(d, response, schema, out, sizeof *(out), __VA_ARGS__)
#define duda_http_json_list(d, response, schema, list, n, ...)                                               \
    duda_http_json_list_checked(d, response, schema, list, sizeof **(list), n, __VA_ARGS__)
#endif
/** Like duda_http_json(), but parses JSON without a schema (see duda_json_read_value()). */
MK_API int duda_http_json_value(struct duda_ctx *d, struct duda_http_response *response,
                                struct duda_value *out, const struct mk_json_limits *limits) MK_API_MUST_USE;

#ifdef __cplusplus
}

template <typename type>
static inline MK_API_MUST_USE int duda_http_json(struct duda_ctx *d, struct duda_http_response *response,
                                                 const struct duda_schema *schema, type *out,
                                                 const struct mk_json_limits *limits)
{
    return duda_http_json_checked(d, response, schema, out, sizeof *out, limits);
}
template <typename type>
static inline MK_API_MUST_USE int duda_http_json_list(struct duda_ctx *d, struct duda_http_response *response,
                                                      const struct duda_schema *schema, type **list,
                                                      size_t *n, const struct mk_json_limits *limits)
{
    return duda_http_json_list_checked(d, response, schema, list, sizeof **list, n, limits);
}
#endif

#endif
