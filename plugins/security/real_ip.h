/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the client of a proxy, and the scheme that this client uses, from request fields: X-Forwarded-For,
 * X-Forwarded-Proto and the like, or Forwarded (RFC 7239). */
#ifndef SECURITY_REAL_IP_H
#define SECURITY_REAL_IP_H

#include <monkey/request.h>

struct security_real_ip {
    mk_str field;        /* with addresses; absent: none */
    mk_str scheme_field; /* with schemes; absent: none */
    bool is_forwarded, scheme_is_forwarded;
    const struct mk_network_set *trusted; /* NULL: no peer is trusted */
};

enum security_real_ip_result {
    SECURITY_REAL_IP_FOUND,  /* *peer is the client, as far as known */
    SECURITY_REAL_IP_HIDDEN, /* a proxy on the way hides its client: *peer is the last trusted address */
    SECURITY_REAL_IP_INVALID /* the same, because an element is no address */
};

/* What the proxies say of their client. */
struct security_client {
    struct mk_addr peer;
    unsigned hops; /* elements that were read for it */
    bool knows_scheme, is_secure;
};

/* Starts at client->peer, which is trusted: each trusted peer names the next one. */
enum security_real_ip_result security_real_ip_find(const struct security_real_ip *real,
                                                   const struct mk_request *request,
                                                   struct security_client *client);
/* After that: the scheme, as the proxy says that named the client. */
void security_real_ip_find_scheme(const struct security_real_ip *real, const struct mk_request *request,
                                  struct security_client *client);

#endif
