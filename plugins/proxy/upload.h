/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the request. It is received as a whole before a connection is taken, so that a slow client
 * holds none: small content in the memory of the request, other content in a spool. With `stream` the client
 * waits until the server behind takes it. */
#ifndef PROXY_UPLOAD_H
#define PROXY_UPLOAD_H

#include "call_type.h"

/* False: no memory. */
bool proxy_upload_begin(struct proxy_call *c);
/* 0: all is there that is to be; -EAGAIN, or an error for mk_spool_status(). */
int proxy_upload_gather(struct proxy_call *c);
/* Then: adds the content to what is asked. */
void proxy_upload_add(struct proxy_call *c, struct mk_upstream_request_options *ask);

#endif
