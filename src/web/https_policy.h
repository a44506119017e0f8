/* SPDX-License-Identifier: Apache-2.0 */
/* The host's requirements for the connection of a request: TLS, and a client certificate. */
#ifndef MK_WEB_HTTPS_POLICY_H
#define MK_WEB_HTTPS_POLICY_H

#include "web/request_type.h"
#include "web/response.h"
#include "web/web.h"

/* Most hosts ask nothing. */
static inline bool mk_https_policy_is_needed(const struct mk_request *r)
{
    return r->site->https_port || r->hosts->client_rules;
}

/* Does a plain request ask for the answer to a challenge, where plain requests are not served? An authority
 * that checks a name asks in plain text (RFC 8555, section 8.3). Such a request may go on, but only a plugin
 * that comes before all others, or a file that is there, may answer it. */
bool mk_https_policy_is_acme_request(const struct mk_request *r);

/* NEXT: it may go on. */
enum mk_verdict mk_https_policy_check(struct mk_request *r, struct mk_response *response);

/* Strict-Transport-Security, on what is encrypted. False when memory is out. */
bool mk_https_policy_add_hsts(const struct mk_request *r, struct mk_response *response);

#endif
