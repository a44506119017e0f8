/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a proxy speaks for, by a field of the request: X-Forwarded-For and those like it, or Forwarded
 * (RFC 7239). */
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
    SECURITY_REAL_TOLD,   /* *peer is the client, as far as it is known */
    SECURITY_REAL_HIDDEN, /* somebody on the way does not want to tell: *peer is the last who can be trusted
                           */
    SECURITY_REAL_BROKEN  /* the same, because of something that is no address */
};

/* From *peer, who is trusted, on: the one who told it is the next, as long as he is trusted, too. */
enum security_real_end security_real_find(const struct security_real *real, const struct mk_request *request,
                                          struct mk_peer *peer);

#endif
