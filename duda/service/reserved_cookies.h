/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the cookies that Duda keeps for services. */
#ifndef DUDA_SERVICE_RESERVED_COOKIES_H
#define DUDA_SERVICE_RESERVED_COOKIES_H

#include <duda/scope.h>

#include "service/duda_ctx.h"

bool duda_request_is_tls(const struct duda_ctx *d); /* does the request come over TLS? */

/* "SCOPE-session" and "SCOPE-token" over plain HTTP, "__Host-SCOPE-session" and so on over TLS. */
enum duda_reserved_cookie { DUDA_COOKIE_SESSION, DUDA_COOKIE_CSRF };
struct duda_cookie_name {
    char text[DUDA_SCOPE_MAX + 32];
};
const char *duda_reserved_cookie_name(const struct duda_ctx *d, enum duda_reserved_cookie which,
                                      struct duda_cookie_name *buf);

/* May the service set or delete the cookie of that name? -EPERM, with a line in the log: it is one of these, with or without
 * a prefix, of any service here. A client that may name a cookie could otherwise plant its session. */
int duda_reserved_cookie_check(const struct duda_ctx *d, mk_str name);
/* The same of the value of a Set-Cookie field, as browsers read it. */
int duda_reserved_cookie_check_header(const struct duda_ctx *d, mk_str line);

#endif
