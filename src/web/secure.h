/* SPDX-License-Identifier: Apache-2.0 */
/* What a host asks of the connection that a request comes on: to be encrypted, and by whom. */
#ifndef MK_WEB_SECURE_H
#define MK_WEB_SECURE_H

#include "web/request.h"
#include "web/response.h"
#include "web/web.h"

/* Most hosts ask nothing. */
static inline bool mk_secure_asks(const struct mk_request *r)
{
    return r->site->https_port || r->web->hosts->client_rules;
}

/* NEXT: it may go on. */
enum mk_verdict mk_secure_enter(struct mk_request *r, struct mk_response *response);

/* Strict-Transport-Security, on what is encrypted. False when memory is out. */
bool mk_secure_mark(const struct mk_request *r, struct mk_response *response);

#endif
