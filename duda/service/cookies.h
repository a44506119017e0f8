/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies with a proof, for sessions. */
#ifndef DUDA_SERVICE_COOKIES_H
#define DUDA_SERVICE_COOKIES_H

#include <duda/scope.h>

#include "service/duda_type.h"

bool duda_cookies_are_safe(const struct duda *d); /* does the request come over TLS? */

/* The name of a cookie that Duda keeps for the service: "SCOPE-WHAT" over plain HTTP, "__Host-SCOPE-WHAT" over
 * TLS. */
struct duda_cookie_name {
    char text[DUDA_SCOPE_MAX + 32];
};
const char *duda_cookies_name(const struct duda *d, const char *what, struct duda_cookie_name *room);

/* What a proof is made for: a name of this service on this host. Absent when memory is out. */
mk_str duda_cookies_purpose(struct duda *d, mk_str name);

#endif
