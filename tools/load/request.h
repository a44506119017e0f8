/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the request that a load client sends. */
#ifndef LOAD_REQUEST_H
#define LOAD_REQUEST_H

#include "base/buf.h"
#include "load/url.h"

/* Writes an HTTP/1.1 GET request. `fields` is a NULL-terminated list of header lines "Name: value"; its Host
 * and User-Agent replace the default ones. `closes` adds Connection: close, whatever `fields` contains. */
void load_request_write(struct mk_buf *out, const struct load_url *url, const char *agent,
                        char *const *fields, bool closes);

#endif
