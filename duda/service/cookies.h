/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies with a proof, for sessions. */
#ifndef DUDA_SERVICE_COOKIES_H
#define DUDA_SERVICE_COOKIES_H

#include "service/reserved_cookies.h"

/* As duda_cookie_set() and so on, for cookies of Duda itself. */
int duda_cookie_set_reserved(struct duda_ctx *d, const struct duda_cookie *cookie);
int duda_cookie_set_reserved_encrypted(struct duda_ctx *d, const struct duda_cookie *cookie);

/* What a proof is made for: a name of this service on this host. Absent when memory is out. */
mk_str duda_cookie_crypto_context(struct duda_ctx *d, mk_str name);

#endif
