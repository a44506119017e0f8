/* SPDX-License-Identifier: Apache-2.0 */
/* Which server an exchange is for: by a cookie that names one, or by a hash of the request. */
#ifndef PROXY_STICKY_H
#define PROXY_STICKY_H

#include "call_type.h"

void proxy_sticky_wish(const struct proxy_call *c, struct mk_upstream_conn_options *options);
/* Names the server that answered, unless the client has named it. 0 or what mk_response_add() answers. */
int proxy_sticky_set(struct proxy_call *c);

#endif
