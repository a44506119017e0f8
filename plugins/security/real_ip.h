/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the address and the scheme of a proxy's client from headers: X-Forwarded-For, X-Forwarded-Proto
 * and the like, or Forwarded (RFC 7239). */
#ifndef SECURITY_REAL_IP_H
#define SECURITY_REAL_IP_H

#include <monkey/request.h>

struct security_real_ip {
    mk_str field;        /* header with addresses; absent: none */
    mk_str scheme_field; /* header with schemes; absent: none */
    bool is_forwarded, scheme_is_forwarded;
    const struct mk_network_set *trusted; /* NULL: no peer is trusted */
};

enum security_real_ip_result {
    SECURITY_REAL_IP_FOUND,  /* *peer is the client, as far as we know */
    SECURITY_REAL_IP_HIDDEN, /* a proxy on the way hides its client: *peer is the last trusted address */
    SECURITY_REAL_IP_INVALID /* an element is not an address: *peer is the last trusted address */
};

/* Information about the client that proxies have sent. */
struct security_client {
    struct mk_addr peer;
    unsigned hops; /* number of elements read */
    bool knows_scheme, is_secure;
};

/* Starts at client->peer, which is trusted. Each trusted peer names the next peer. */
enum security_real_ip_result security_real_ip_find(const struct security_real_ip *real,
                                                   const struct mk_request *request,
                                                   struct security_client *client);
/* Determines the scheme that was reported by the proxy that named the client. Call security_real_ip_find()
 * first. */
void security_real_ip_find_scheme(const struct security_real_ip *real, const struct mk_request *request,
                                  struct security_client *client);

#endif
