/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the cookies that Duda keeps for services. */
#ifndef DUDA_SERVICE_COOKIE_NAMES_H
#define DUDA_SERVICE_COOKIE_NAMES_H

#include <duda/scope.h>

#include "service/duda_type.h"

bool duda_cookies_are_safe(const struct duda *d); /* does the request come over TLS? */

/* "SCOPE-session" and "SCOPE-token" over plain HTTP, "__Host-SCOPE-session" and so on over TLS. */
enum duda_own_cookie { DUDA_COOKIE_SESSION, DUDA_COOKIE_TOKEN };
struct duda_cookie_name {
    char text[DUDA_SCOPE_MAX + 32];
};
const char *duda_cookies_name(const struct duda *d, enum duda_own_cookie which,
                              struct duda_cookie_name *room);

/* May the service set or delete the cookie of that name? -EPERM, with a line in the log: it is one of these, with or without
 * a prefix, of any service here. A client that may name a cookie could otherwise plant its session. */
int duda_cookies_allow(const struct duda *d, mk_str name);
/* The same of the value of a Set-Cookie field, as browsers read it. */
int duda_cookies_allow_line(const struct duda *d, mk_str line);

#endif
