/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the request. Small content is gathered before a connection is taken, so that a slow client
 * holds none; of other content the client waits with the rest until the server behind takes it. */
#ifndef PROXY_UPLOAD_H
#define PROXY_UPLOAD_H

#include "call_type.h"

/* False: no memory. */
bool proxy_upload_begin(struct proxy_call *c);
/* 0: gathered is what is to be; -EAGAIN, or why the client's content cannot be read. */
int proxy_upload_gather(struct proxy_call *c);
/* Then: adds the content to what is asked. */
void proxy_upload_add(struct proxy_call *c, struct mk_client_request *ask);

#endif
