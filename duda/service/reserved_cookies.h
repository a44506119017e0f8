/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the cookies that Duda reserves for itself. */
#ifndef DUDA_SERVICE_RESERVED_COOKIES_H
#define DUDA_SERVICE_RESERVED_COOKIES_H

#include <duda/scope.h>

#include "service/duda_ctx.h"

bool duda_request_is_tls(struct duda_ctx *d); /* the client uses TLS */

/* "SCOPE-session" and "SCOPE-token" over plain HTTP, "__Host-SCOPE-session" and so on over TLS. */
enum duda_reserved_cookie { DUDA_COOKIE_SESSION, DUDA_COOKIE_CSRF };
struct duda_cookie_name {
    char text[DUDA_SCOPE_MAX + 32];
};
const char *duda_reserved_cookie_name(struct duda_ctx *d, enum duda_reserved_cookie cookie,
                                      struct duda_cookie_name *buf);

/* Checks whether the service may set or delete the cookie with that name. Returns -EPERM, and logs a message,
 * if the name, with or without a prefix, is reserved for any service of this server: a client that controls
 * the name could otherwise plant its session in another browser. */
int duda_reserved_cookie_check(struct duda_ctx *d, mk_str name);
/* Checks the cookie name in the value of a Set-Cookie header, as a browser would parse it. */
int duda_reserved_cookie_check_header(struct duda_ctx *d, mk_str line);

#endif
