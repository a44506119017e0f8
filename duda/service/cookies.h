/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies with a proof, for sessions. */
#ifndef DUDA_SERVICE_COOKIES_H
#define DUDA_SERVICE_COOKIES_H

#include "service/cookie_names.h"

/* As duda_cookie_set() and so on, for cookies of Duda itself. */
int duda_cookies_set(struct duda *d, const struct duda_cookie *cookie);
int duda_cookies_set_sealed(struct duda *d, const struct duda_cookie *cookie);

/* What a proof is made for: a name of this service on this host. Absent when memory is out. */
mk_str duda_cookies_purpose(struct duda *d, mk_str name);

#endif
