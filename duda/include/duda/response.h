/* SPDX-License-Identifier: Apache-2.0 */
/* What the client gets: status, fields and content. */
#ifndef DUDA_RESPONSE_H
#define DUDA_RESPONSE_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions answer 0 or a negated errno value, which a handler may return as it is: -EALREADY (the head has
 * been sent), -EINVAL, -ENOMEM, -ETIMEDOUT, -ECANCELED. */

/** The status, 200 to 599; 200 until it is set. */
MK_API int duda_status(struct duda_ctx *d, unsigned status);
/** Sets a field in the place of others of its name, or adds one. A value with a line end is -EINVAL; a `Set-Cookie` with the name of a
 * cookie that Duda uses is -EPERM (see duda_cookie_set()). */
MK_API int duda_header_set(struct duda_ctx *d, const char *name, mk_str value);
MK_API int duda_header_add(struct duda_ctx *d, const char *name, mk_str value);
/** The Content-Type; "text/plain; charset=utf-8" until it is set. */
MK_API int duda_content_type(struct duda_ctx *d, const char *type);

/**
 * Adds to the content. It is kept, and sent with its length when the handler has returned; if it becomes
 * longer than 64 KB, the response begins, and the function waits while the client has no room.
 */
MK_API int duda_write(struct duda_ctx *d, mk_str text);
MK_API int duda_puts(struct duda_ctx *d, const char *text);
MK_API int duda_printf(struct duda_ctx *d, const char *fmt, ...) MK_API_PRINTF(2, 3);
/** Sends what was said so far, and the head before it: for content that comes in pieces over time. Waits
 * until the client has room for it. */
MK_API int duda_flush(struct duda_ctx *d);

/** Drops what was said and not sent, and the status; fields stay. -EALREADY when the response has begun. */
MK_API int duda_response_reset(struct duda_ctx *d);

/** In a function of DUDA_AFTER(): what the handler answered, and what is to count in its place. */
MK_API int duda_result(const struct duda_ctx *d);
MK_API void duda_set_result(struct duda_ctx *d, int result);

#ifdef __cplusplus
}
#endif

#endif
