/* SPDX-License-Identifier: Apache-2.0 */
/* Signed and encrypted cookies, for sessions. */
#ifndef DUDA_SERVICE_COOKIES_H
#define DUDA_SERVICE_COOKIES_H

#include "service/reserved_cookies.h"

/* Like the functions without _reserved, but for Duda's own cookies. */
int duda_cookie_set_reserved(struct duda_ctx *d, const struct mk_cookie *cookie);
/* Calls may_set() when the cookie is encrypted, just before it is set: false prevents that, and the function returns
 * -ESTALE. NULL: no condition. */
int duda_cookie_set_reserved_encrypted(struct duda_ctx *d, const struct mk_cookie *cookie,
                                       bool (*may_set)(void *ctx), void *ctx);

/* Returns the context that a signature is bound to: the cookie name, this service and this host. Absent if
 * out of memory. */
mk_str duda_cookie_crypto_context(struct duda_ctx *d, mk_str name);

#endif
