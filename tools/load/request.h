/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the request that a load client sends. */
#ifndef LOAD_REQUEST_H
#define LOAD_REQUEST_H

#include "base/buf.h"
#include "load/url.h"

/* Writes an HTTP/1.1 GET. `fields` are header lines "Name: value" and end with NULL; Host and User-Agent
 * among them replace the default ones. `closes`: sends Connection: close, whatever `fields` has. */
void load_request_write(struct mk_buf *out, const struct load_url *url, const char *agent,
                        char *const *fields, bool closes);

#endif
