/* SPDX-License-Identifier: Apache-2.0 */
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

/** Sets the status (RFC 9110, section 15), 200 to 599; 200 until it is set. 0, -EINVAL or -EALREADY. */
int mk_response_set_status(struct mk_response *r, unsigned status);
unsigned mk_response_status(const struct mk_response *r);

/**
 * Adds a field line; both texts are copied. 0; -EINVAL when the name is not a token, the value holds a
 * control character, or the field is one of the server's own; -ENOMEM; -EALREADY.
 */
int mk_response_add(struct mk_response *r, mk_str name, mk_str value);

/** Content that is copied. */
int mk_response_set_text(struct mk_response *r, mk_str text);

/** Content that outlives the request, such as a literal: it is not copied. */
int mk_response_set_static(struct mk_response *r, mk_str text);

/** For the length of content whose end only its source knows. */
#define MK_LENGTH_UNKNOWN (-1)

/**
 * Content that `ops->pull(ctx)` makes, `length` bytes of it or MK_LENGTH_UNKNOWN. From here on
 * ops->close(ctx) will be called, also when this function fails.
 */
int mk_response_set_source(struct mk_response *r, const struct mk_source_ops *ops, void *ctx, int64_t length);

#ifdef __cplusplus
}
#endif

#endif
