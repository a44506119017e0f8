/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: status, headers, and a body from memory, a file or a source. */
#ifndef MONKEY_RESPONSE_H
#define MONKEY_RESPONSE_H

#include <monkey/body_source.h>
#include <monkey/http.h>
#include <monkey/str.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A response: status, headers and body, never raw bytes, so that it can be sent over any version of HTTP.
 *
 * You can change it until its head is sent; from then on, every function below returns -EALREADY. The server
 * does the framing: adding Content-Length, Transfer-Encoding or Connection fails with -EINVAL. It also adds
 * Date and Server, unless the response already has them, as a forwarded response may (RFC 9110, section
 * 6.6.1).
 */
struct mk_response;
struct mk_request;

/**
 * Sets the status (RFC 9110, section 15) in the range 200 to 599; initially 200. 0 removes a status that was
 * set. Returns 0, -EINVAL or -EALREADY.
 *
 *     int e = mk_response_set_status(response, 201);
 *     e = e ? e : mk_response_add_header(response, MK_STR("Location"), MK_STR("/items/7"));
 */
MK_API int mk_response_set_status(struct mk_response *response, unsigned status);
/** The status; 200 if none was set. */
MK_API unsigned mk_response_status(const struct mk_response *response);
/** Was a status set? */
MK_API bool mk_response_has_status(const struct mk_response *response);
/** Is the response an error with the server's default page, because neither a handler nor [ERROR_PAGES]
 * supplied one? Hooks may replace that page. */
MK_API bool mk_response_is_error_page(const struct mk_response *response);

/**
 * Sets the status (400 to 599) for a body source that is about to fail. If none of the response was sent, the
 * client receives the error page of that status: 502 or 504 for a gateway, 413 for a request body that is too
 * large. Call it before read() returns its error, from read() or earlier. The response is then reset, and
 * on_response is called again for the error page. Returns 0 or -EINVAL.
 *
 *     mk_response_fail(response, 502);
 *     return -EPIPE;
 */
MK_API int mk_response_fail(struct mk_response *response, unsigned status);
/** Sets the error code (RFC 9113, section 7) with which the stream of an HTTP/2 client is reset if the body
 * source fails after part of the response was sent. A gateway passes on the code of its backend. 0 or an
 * unknown code: INTERNAL_ERROR. */
MK_API void mk_response_set_reset_code(struct mk_response *response, uint32_t code);

/**
 * Adds a header; both strings are copied. Returns 0; -EINVAL if the name is not a token, the value contains a
 * control character, or only the server may set the header; -ENOMEM; or -EALREADY. A second Date or Server
 * replaces the first.
 */
MK_API int mk_response_add_header(struct mk_response *response, mk_str name, mk_str value);

/** Adds a header without copying or validating it. Both strings must outlive the request, the name must be a
 * token, and the value must not contain control characters. Use it for headers from the configuration, which
 * are validated when the configuration is loaded. Returns 0, -ENOMEM or -EALREADY. */
MK_API int mk_response_add_header_nocopy(struct mk_response *response, mk_str name, mk_str value);
/**
 * Adds headers that the caller has both as an array and as text: "Name: value" and CRLF for each, as sent in
 * HTTP/1. Nothing is copied or validated: the strings must outlive the request, and meet the conditions of
 * mk_response_add_header_nocopy(). Returns 0, -ENOMEM or -EALREADY. Use it to forward the response of another
 * server: see mk_upstream_request_headers().
 */
MK_API int mk_response_add_headers(struct mk_response *response, mk_str text, const struct mk_header *headers,
                                   size_t n);
/**
 * Adds a header unless the response already has one of that name. Use it for defaults. The header is neither
 * copied nor validated: it must meet the conditions of mk_response_add_header_nocopy(). Returns 0, -ENOMEM or
 * -EALREADY.
 *
 *     (void)mk_response_add_default(response, MK_STR("Cache-Control"), MK_STR("no-cache"));
 */
MK_API int mk_response_add_default(struct mk_response *response, mk_str name, mk_str value);
/** Sets the headers of an event stream: `Content-Type: text/event-stream`, `Cache-Control: no-store`, and
 * `X-Accel-Buffering: no`, without which nginx would buffer the events. The body consists of events as
 * mk_sse_write() writes them. Returns 0, -ENOMEM or -EALREADY. */
MK_API int mk_response_begin_sse(struct mk_response *response);
/**
 * Removes all headers of that name, if any. Returns 0, -ENOMEM or -EALREADY.
 *
 *     mk_response_remove_header(response, MK_STR("X-Powered-By"));
 */
MK_API int mk_response_remove_header(struct mk_response *response, mk_str name);
/** Combines mk_response_remove_header() and mk_response_add_header(), and returns their errors. */
MK_API int mk_response_set_header(struct mk_response *response, mk_str name, mk_str value);

/**
 * The value of the first header of that name; absent if there is none. Valid until the response changes.
 *
 *     bool is_page = mk_str_starts(mk_response_header(response, MK_STR("Content-Type")), MK_STR("text/html"));
 */
MK_API mk_str mk_response_header(const struct mk_response *response, mk_str name);
/** Returns the i-th header that a handler or plugin has set. Returns false if `i` is out of range. */
MK_API bool mk_response_header_at(const struct mk_response *response, size_t i, mk_str *name, mk_str *value);

/**
 * Adds a trailer, a field after the body (RFC 9110, section 6.5). A body source or filter may add trailers
 * even after the head was sent, before it returns 0. Both strings are copied. The head announces the trailers
 * that were added before it is sent; to announce later ones, add a `Trailer` header, which the server omits
 * if trailers cannot follow. Trailers are dropped if they cannot be sent: over HTTP/1.1, if the body length
 * is known or the client did not send `TE: trailers` (mk_request_accepts_trailers()). Do not rely on trailers
 * alone.
 *
 * Returns 0; -EINVAL as for mk_response_add_header(), and for names that are not allowed in trailers;
 * -EMSGSIZE if all trailers together exceed 16 KB; or -ENOMEM.
 */
MK_API int mk_response_add_trailer(struct mk_response *response, mk_str name, mk_str value);

/**
 * Sends an interim response, status 102 to 199 (RFC 9110, section 15.2), before the final one. It contains
 * only the given headers: the headers of `response` are sent with the final head. You may send several
 * interim responses until that head is sent. Call it from on_request or a handler of the request. The interim
 * response is sent immediately if that function returns MK_WAIT, and otherwise with the head. The server
 * sends 100 automatically: see mk_request_read().
 *
 * Returns 0; -EINVAL for another status, or a header that mk_response_add_header() rejects; -EALREADY;
 * -EOPNOTSUPP if the client does not support interim responses (HTTP/1.0); or -EAGAIN if the client cannot
 * receive it now. No client depends on interim responses, so skip them on error.
 *
 *     const struct mk_header hint = {MK_STR("Link"), MK_STR("</style.css>; rel=preload; as=style")};
 *     mk_response_send_1xx(request, response, 103, &hint, 1);
 */
MK_API int mk_response_send_1xx(struct mk_request *request, const struct mk_response *response,
                                unsigned status, const struct mk_header *headers, size_t n);

/** The length of the body; MK_LENGTH_UNKNOWN if it is not known in advance. */
MK_API int64_t mk_response_length(const struct mk_response *response);

/** Is the body a file? False if a filter changes the body, and for a response to HEAD. */
MK_API bool mk_response_is_file(const struct mk_response *response);

/** Identifies a file and its version: a replaced file has another inode, and a file changed in place
 * has another `changed_ns` (st_ctim). Paths, links and virtual hosts make no difference. */
struct mk_file_id {
    uint64_t device, inode;
    uint64_t size;
    int64_t modified_ns, changed_ns; /**< nanoseconds since the Unix epoch */
};
/** Returns the identity of the file that the body consists of. Returns false if there is none (see
 * mk_response_is_file()), for parts of a file, and for descriptors passed to mk_response_set_body_file().
 * Makes no system call. */
MK_API bool mk_response_file_id(const struct mk_response *response, struct mk_file_id *id);

/**
 * Sets the body; the text is copied. Returns 0, -ENOMEM or -EALREADY. If a handler of mk_server_add_route()
 * sets the body but no Content-Type header, the response gets the default type of the server: see
 * mk_server_set_default_type().
 *
 *     int e = mk_response_set_header(response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
 *     e = e ? e : mk_response_set_body(response, MK_STR("hello\n"));
 *     return e ? MK_ERROR : MK_DONE;
 */
MK_API int mk_response_set_body(struct mk_response *response, mk_str text);

/** Sets a body that outlives the request, such as a literal; the text is not copied. Returns 0, -ENOMEM or
 * -EALREADY. */
MK_API int mk_response_set_body_nocopy(struct mk_response *response, mk_str text);

/**
 * Sets a body that the response takes over, without copying it: free_data(data) is called once, in the thread
 * of the request, when the request has ended, no matter what was sent, and even if this function fails.
 * Returns 0; -EINVAL if `free_data` is NULL; -ENOMEM; or -EALREADY.
 *
 *     char *report = make_report(&len);
 *     if (mk_response_set_body_owned(response, mk_str_of(report, len), free, report))
 *         return MK_ERROR;
 */
MK_API int mk_response_set_body_owned(struct mk_response *response, mk_str text,
                                      void (*free_data)(void *data), void *data) MK_API_MUST_USE;

/**
 * Sends `length` bytes of an open file, starting at `offset`, as the body. The response takes ownership of
 * the descriptor, even if this function fails. The kernel sends the bytes directly where possible. If the
 * file shrinks while the server sends it, the server closes the connection. Returns 0; -EINVAL (invalid
 * descriptor or range); -ENOMEM; or -EALREADY.
 *
 *     int fd = open("/srv/report.pdf", O_RDONLY | O_CLOEXEC);
 *     if (fd < 0) {
 *         mk_response_set_status(response, 404);
 *         return MK_ERROR;
 *     }
 *     struct stat st;
 *     if (fstat(fd, &st)) {
 *         close(fd);
 *         return MK_ERROR;
 *     }
 *     return mk_response_set_body_file(response, fd, 0, (uint64_t)st.st_size) ? MK_ERROR : MK_DONE;
 */
MK_API int mk_response_set_body_file(struct mk_response *response, int fd, uint64_t offset, uint64_t length);

/** The length of a body is not known in advance: the body ends when read() of its source returns 0. */
#define MK_LENGTH_UNKNOWN (-1)

/**
 * Sets a body that `ops->read(ctx)` produces, of `length` bytes or MK_LENGTH_UNKNOWN. `ops` must live as long
 * as the request. The server will call ops->close(ctx), even if this function fails. Returns 0; -EINVAL for
 * any other negative `length`, or if there is no `read`; or -EALREADY.
 */
MK_API int mk_response_set_body_source(struct mk_response *response, const struct mk_body_source_ops *ops,
                                       void *ctx, int64_t length);

/**
 * Sets a source that produces the complete response, including status line and headers; the connection is
 * closed afterwards. For programs that speak HTTP themselves (RFC 3875, section 5). The status and headers
 * of `response` are used only in logs. Returns -EOPNOTSUPP for HTTP versions that do not allow it; otherwise,
 * returns the same values as mk_response_set_body_source().
 */
MK_API int mk_response_set_raw_source(struct mk_response *response, const struct mk_body_source_ops *ops,
                                      void *ctx);

/** Flags of mk_response_make_conditional(). */
enum {
    MK_CONDITIONAL_ETAG = 1,   /**< adds an ETag, a digest of a body in memory, unless there is one */
    MK_CONDITIONAL_RANGES = 2, /**< serves byte ranges, unless the virtual host has `Ranges off` */
};
/**
 * Makes a complete response conditional: evaluates the preconditions of the request against its ETag and
 * Last-Modified, and serves byte ranges of its body (RFC 9110, sections 13 and 14). Call this function last,
 * when status, headers and body are set. It changes only responses with status 200 to GET or HEAD: to 304
 * without a body, or to 206 with one range, or with several ranges as multipart/byteranges. Ranges require a
 * body in memory or in a file. Returns 0; 412 or 416, to which it has set the status; -ENOMEM; or -EALREADY
 * if the response has started.
 *
 *     mk_response_set_body_nocopy(response, map_of_the_town);
 *     if (mk_response_make_conditional(request, response, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES))
 *         return MK_ERROR;
 *     return MK_DONE;
 */
MK_API int mk_response_make_conditional(struct mk_request *request, struct mk_response *response,
                                        unsigned flags) MK_API_MUST_USE;

/** Will the client receive a body? False for HEAD, 204 and 304, and for a response without a body. Also
 * false for a raw source, because the server cannot tell which part of its output is the body. */
MK_API bool mk_response_will_send_body(const struct mk_request *request, const struct mk_response *response);

/**
 * Was the complete response sent, as far as the server can tell: did the kernel accept all of it? The result
 * is known when the request ends: in close() of a body source or filter, in on_done, and in functions
 * registered with mk_request_add_cleanup().
 *
 * The result is true if everything that the client should receive was sent: also for HEAD, for 304, and for a
 * filter that needed less input, even if only a part of the source was read, or nothing. The result is false
 * if the client disconnected or reset its stream, if an error occurred, and for a source that is closed
 * because another body replaces its own.
 */
MK_API bool mk_response_was_sent(const struct mk_response *response);

#ifdef __cplusplus
}
#endif

#endif
