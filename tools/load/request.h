/* SPDX-License-Identifier: Apache-2.0 */
/* The request that a server is asked with. */
#ifndef LOAD_REQUEST_H
#define LOAD_REQUEST_H

#include "base/buf.h"
#include "load/url.h"

/* A GET of HTTP/1.1. `fields` are lines "Name: value", up to NULL: they come as they are, in the place of our
 * own Host and User-Agent. `closes`: the connection ends with the answer, whatever they say about it. */
void load_request_write(struct mk_buf *out, const struct load_url *url, const char *agent,
                        char *const *fields, bool closes);

#endif
