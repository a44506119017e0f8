/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies with a proof, for sessions. */
#ifndef DUDA_SERVICE_COOKIES_H
#define DUDA_SERVICE_COOKIES_H

#include "service/duda_type.h"

bool duda_cookies_are_safe(const struct duda *d); /* does the request come over TLS? */

/* "NAME" over plain HTTP, "__Host-NAME" over TLS. */
const char *duda_cookies_name(const struct duda *d, const char *plain, const char *host);

#endif
