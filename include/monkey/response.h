/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: status, fields, and content as text, file or source. */
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
 * A response: status, fields and content, never raw bytes, so that it can be sent over any version of HTTP.
 *
 * It can be changed until its head is sent; from then on every function below returns -EALREADY. The server
 * does the framing: adding Content-Length, Transfer-Encoding or Connection fails (-EINVAL). It also adds Date
 * and Server, unless the response has its own, as one that passes on what another server sent (RFC 9110,
 * section 6.6.1).
 */
struct mk_response;
struct mk_request;

/** Sets the status (RFC 9110, section 15), 200 to 599; 200 until it is set. 0, -EINVAL or -EALREADY. */
MK_API int mk_response_set_status(struct mk_response *r, unsigned status);
MK_API unsigned mk_response_status(const struct mk_response *r);
/** Is it an error with the page of the server, because neither a handler nor [ERROR_PAGES] has one? Hooks
 * may replace it. */
MK_API bool mk_response_is_error_page(const struct mk_response *r);

/**
 * The content is about to fail, and this is the status that the client gets for it (400 to 599), with its
 * error page, as long as nothing of the response was sent: 502 or 504 for a gateway, 413 for a request with
 * too much content. Call it before pull() returns its error, from there or earlier. The response is emptied
 * then, and on_response called again, for the error page. 0 or -EINVAL.
 *
 *     mk_response_fail(response, 502);
 *     return -EPIPE;
 */
MK_API int mk_response_fail(struct mk_response *r, unsigned status);

/**
 * Adds a field line; both texts are copied. 0; -EINVAL when the name is not a token, the value holds a
 * control character, or the field is one of the server's own; -ENOMEM; -EALREADY. A second Date or Server
 * replaces the first.
 */
MK_API int mk_response_add_header(struct mk_response *r, mk_str name, mk_str value);

/** The same without copying or checking: both outlive the request, the name is a token, the value holds no
 * control character. For fields out of a configuration, which was checked when it was loaded. */
MK_API int mk_response_add_header_nocopy(struct mk_response *r, mk_str name, mk_str value);
/**
 * Adds field lines that exist as text, too: "Name: value" and CRLF for each, which is what HTTP/1 sends.
 * Nothing is copied or checked: both outlive the request, and are as mk_response_add_header_nocopy() wants them. 0,
 * -ENOMEM or -EALREADY. For responses that come from another server: see mk_upstream_request_headers().
 */
MK_API int mk_response_add_headers(struct mk_response *r, mk_str text, const struct mk_header *lines,
                                   size_t n);
/** Removes every field line of that name; harmless when there is none. 0, -ENOMEM or -EALREADY. */
MK_API int mk_response_remove_header(struct mk_response *r, mk_str name);
/** mk_response_remove_header() and mk_response_add_header() in one. */
MK_API int mk_response_set_header(struct mk_response *r, mk_str name, mk_str value);

/** The value of the first field line of that name; absent if there is none. Lives until the response is
 * changed. */
MK_API mk_str mk_response_header(const struct mk_response *r, mk_str name);
/** The i-th field line, without those that the server adds; false when there are no more. */
MK_API bool mk_response_header_at(const struct mk_response *r, size_t i, mk_str *name, mk_str *value);

/**
 * Adds a trailer, a field after the content (RFC 9110, section 6.5). Allowed even after the head was sent, by
 * a source or filter before it returns 0. Both texts are copied. The head announces the trailers added before
 * it is sent; to announce later ones, add a field `Trailer`, which the server leaves out where no trailers
 * can follow. Trailers are dropped where they cannot be sent: over HTTP/1.1 when the length of the content is
 * known, or the client did not send `TE: trailers` (mk_request_accepts_trailers()). So do not rely on
 * trailers alone.
 *
 * 0; -EINVAL as mk_response_add_header(), and for names that have no meaning behind the content; -EMSGSIZE when all
 * of them are more than 16 KB; -ENOMEM.
 */
MK_API int mk_response_add_trailer(struct mk_response *r, mk_str name, mk_str value);

/**
 * Sends an interim response ahead of the final one, from 102 to 199 (RFC 9110, section 15.2), with these
 * fields alone: what was added to the response is kept for its head. As often as wanted, until that is sent.
 * Call it from on_request or a handler of the request. It leaves at once when that returns MK_WAIT, else
 * with the head. The server sends 100 by itself: see mk_request_read().
 *
 * 0; -EINVAL for another status, or a field that mk_response_add_header() would not take; -EALREADY; -EOPNOTSUPP
 * for a client that does not know them (HTTP/1.0); -EAGAIN when the client has no room for it now. No client
 * relies on interim responses: leave out what cannot be sent.
 *
 *     const struct mk_header hint = {MK_STR("Link"), MK_STR("</style.css>; rel=preload; as=style")};
 *     mk_response_send_1xx(request, response, 103, &hint, 1);
 */
MK_API int mk_response_send_1xx(struct mk_request *request, const struct mk_response *r, unsigned status,
                                const struct mk_header *fields, size_t n);

/** Length of the content; MK_LENGTH_UNKNOWN until its end. */
MK_API int64_t mk_response_length(const struct mk_response *r);

/** Does the content come from a file? False if a filter changes it, or for a head alone. */
MK_API bool mk_response_is_file(const struct mk_response *r);

/** Identifies a file and its version: a file that is replaced has another inode, one that is changed in place
 * another `changed_ns` (st_ctim). Paths, links and hosts make no difference. */
struct mk_file_id {
    uint64_t device, inode;
    uint64_t size;
    int64_t modified_ns, changed_ns; /**< since 1970 */
};
/** The file that the content is the whole of. False if there is none: see mk_response_is_file(); also for
 * parts of a file, and for the descriptors of mk_response_set_body_file(). Makes no system call. */
MK_API bool mk_response_file_id(const struct mk_response *r, struct mk_file_id *id);

/** Content that is copied. */
MK_API int mk_response_set_body(struct mk_response *r, mk_str text);

/** Content that outlives the request, such as a literal: it is not copied. */
MK_API int mk_response_set_body_nocopy(struct mk_response *r, mk_str text);

/**
 * Content out of an open file: `length` bytes from `offset` on. The descriptor belongs to the response from
 * here on, also when this fails. The bytes are sent by the kernel where that is possible; a file that shrinks
 * meanwhile ends the connection. 0, -EINVAL (no descriptor, or beyond any file), -ENOMEM or -EALREADY.
 */
MK_API int mk_response_set_body_file(struct mk_response *r, int fd, uint64_t offset, uint64_t length);

/** For the length of content whose end only its source knows. */
#define MK_LENGTH_UNKNOWN (-1)

/**
 * Content that `ops->pull(ctx)` makes, `length` bytes of it or MK_LENGTH_UNKNOWN. From here on
 * ops->close(ctx) will be called, also when this function fails.
 */
MK_API int mk_response_set_body_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx,
                                       int64_t length);

/**
 * `ops->pull(ctx)` generates everything that the client receives, including status line and fields, and the
 * connection is closed afterwards: for programs that speak HTTP themselves (RFC 3875, section 5). The status
 * and fields set here are only for logs. Not possible over every version: -EOPNOTSUPP. Otherwise as
 * mk_response_set_body_source().
 */
MK_API int mk_response_set_raw_source(struct mk_response *r, const struct mk_body_source_ops *ops, void *ctx);

/** Will the client receive content? Not with HEAD, 204 or 304, and not when there is none. The output of a
 * raw source does not count, because the server cannot tell which of it is content. */
MK_API bool mk_response_will_send_body(const struct mk_request *request, const struct mk_response *r);

/**
 * Was the response sent whole, as far as the server can tell: did the kernel take all of it? Known when the
 * request is over: for close() of a source or a filter, on_done, and functions of mk_request_add_cleanup().
 *
 * This is about what the client had to get: true also for a HEAD, a 304, or a filter that needed less, when
 * the source was pulled for a part of its content or not at all. False when the client left or reset its
 * stream, when something failed, and for a source that is closed because other content takes its place.
 */
MK_API bool mk_response_was_sent(const struct mk_response *r);

#ifdef __cplusplus
}
#endif

#endif
