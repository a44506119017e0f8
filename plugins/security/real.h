/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the client behind a proxy from a request field: X-Forwarded-For and the like, or Forwarded (RFC
 * 7239). */
#ifndef SECURITY_REAL_H
#define SECURITY_REAL_H

#include <monkey/request.h>

struct security_real {
    mk_str field; /* absent: none */
    bool is_forwarded;
    const struct mk_network *trusted;
    size_t n_trusted;
};

enum security_real_end {
    SECURITY_REAL_TOLD,   /* *peer is the client, as far as known */
    SECURITY_REAL_HIDDEN, /* a proxy on the way hides its client: *peer is the last trusted address */
    SECURITY_REAL_BROKEN  /* the same, because an element is no address */
};

/* Starts at *peer, which is trusted: each trusted peer names the next one. */
enum security_real_end security_real_find(const struct security_real *real, const struct mk_request *request,
                                          struct mk_peer *peer);

#endif
