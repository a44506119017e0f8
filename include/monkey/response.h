/* SPDX-License-Identifier: Apache-2.0 */
/* Responses: status, fields, and content as text, file or source. */
#ifndef MONKEY_RESPONSE_H
#define MONKEY_RESPONSE_H

#include <monkey/source.h>
#include <monkey/str.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A response: status, fields and content, never raw bytes, so that it can be sent over any version of HTTP.
 *
 * It can be written until its head is sent; from then on every function below answers -EALREADY. Framing
 * belongs to the server: Content-Length, Transfer-Encoding, Connection, Date and Server are not to be added
 * (-EINVAL).
 */
struct mk_response;
struct mk_request;

/** Sets the status (RFC 9110, section 15), 200 to 599; 200 until it is set. 0, -EINVAL or -EALREADY. */
MK_API int mk_response_set_status(struct mk_response *r, unsigned status);
MK_API unsigned mk_response_status(const struct mk_response *r);

/**
 * Adds a field line; both texts are copied. 0; -EINVAL when the name is not a token, the value holds a
 * control character, or the field is one of the server's own; -ENOMEM; -EALREADY.
 */
MK_API int mk_response_add(struct mk_response *r, mk_str name, mk_str value);

/** The same without copying or checking: both outlive the request, the name is a token, the value holds no
 * control character. For fields out of a configuration, which was checked when it was loaded. */
MK_API int mk_response_add_static(struct mk_response *r, mk_str name, mk_str value);
/** Removes every field line of that name; harmless when there is none. 0, -ENOMEM or -EALREADY. */
MK_API int mk_response_remove(struct mk_response *r, mk_str name);
/** mk_response_remove() and mk_response_add() in one. */
MK_API int mk_response_set(struct mk_response *r, mk_str name, mk_str value);

/** The value of the first field line of that name; absent if there is none. Lives until the response is
 * changed. */
MK_API mk_str mk_response_field(const struct mk_response *r, mk_str name);
/** The i-th field line, without the server's own; false when there are no more. */
MK_API bool mk_response_field_at(const struct mk_response *r, size_t i, mk_str *name, mk_str *value);

/**
 * Adds a trailer: a field behind the content (RFC 9110, section 6.5). Also when the head was sent already, by
 * a source or filter before it answers 0. Both texts are copied. Those that are there when the head is sent
 * are announced in it. Dropped where they cannot be sent: over HTTP/1.1 when the length of the content is
 * known, or the client has not said `TE: trailers` (mk_request_accepts_trailers()). So nothing that a client
 * must know may stand there alone.
 *
 * 0; -EINVAL as mk_response_add(), and for names that have no meaning behind the content; -EMSGSIZE when all
 * of them are more than 16 KB; -ENOMEM.
 */
MK_API int mk_response_add_trailer(struct mk_response *r, mk_str name, mk_str value);

/** Length of the content; MK_LENGTH_UNKNOWN when only its end will tell. */
MK_API int64_t mk_response_length(const struct mk_response *r);

/** Is its content out of a file? Not if a filter changes it, or only its head is made. */
MK_API bool mk_response_is_file(const struct mk_response *r);

/** Content that is copied. */
MK_API int mk_response_set_text(struct mk_response *r, mk_str text);

/** Content that outlives the request, such as a literal: it is not copied. */
MK_API int mk_response_set_static(struct mk_response *r, mk_str text);

/**
 * Content out of an open file: `length` bytes from `offset` on. The descriptor belongs to the response from
 * here on, also when this fails. The bytes are sent by the kernel where that is possible; a file that shrinks
 * meanwhile ends the connection. 0, -EINVAL (no descriptor, or beyond any file), -ENOMEM or -EALREADY.
 */
MK_API int mk_response_set_file(struct mk_response *r, int fd, uint64_t offset, uint64_t length);

/** For the length of content whose end only its source knows. */
#define MK_LENGTH_UNKNOWN (-1)

/**
 * Content that `ops->pull(ctx)` makes, `length` bytes of it or MK_LENGTH_UNKNOWN. From here on
 * ops->close(ctx) will be called, also when this function fails.
 */
MK_API int mk_response_set_source(struct mk_response *r, const struct mk_source_ops *ops, void *ctx,
                                  int64_t length);

/**
 * Everything that the client gets is what `ops->pull(ctx)` makes, status line and fields included, and the
 * connection is closed behind it: for programs that speak HTTP themselves (RFC 3875, section 5). Status and
 * fields that were set are for logs alone. Not possible over every version: -EOPNOTSUPP. Otherwise as
 * mk_response_set_source().
 */
MK_API int mk_response_set_raw_source(struct mk_response *r, const struct mk_source_ops *ops, void *ctx);

/** Will the client be sent content at all? Not with HEAD, 204 or 304, and not when there is none; what a raw
 * source makes does not count, nobody knows which of it is content. */
MK_API bool mk_response_will_send_content(const struct mk_request *request, const struct mk_response *r);

#ifdef __cplusplus
}
#endif

#endif
