/* SPDX-License-Identifier: Apache-2.0 */
/* The host's connection requirements: TLS and client certificates. */
#ifndef MK_WEB_HTTPS_POLICY_H
#define MK_WEB_HTTPS_POLICY_H

#include "web/request_type.h"
#include "web/response.h"
#include "web/web.h"

/* Might the host have connection requirements? Most hosts have none. */
static inline bool mk_https_policy_is_needed(const struct mk_request *r)
{
    return r->site->https_port || r->hosts->client_rules;
}

/* Is the request a plain-text ACME challenge on a host that does not serve plain requests? A CA validates
 * names over plain HTTP (RFC 8555, section 8.3). Such a request may continue, but only a plugin that runs
 * before all others, or an existing file, may respond to it. */
bool mk_https_policy_is_acme_request(const struct mk_request *r);

/* MK_NEXT: the request may continue. */
enum mk_verdict mk_https_policy_check(struct mk_request *r, struct mk_response *response);

/* Adds Strict-Transport-Security to responses over TLS. False: out of memory. */
bool mk_https_policy_add_hsts(const struct mk_request *r, struct mk_response *response);

#endif
