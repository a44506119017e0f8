/* SPDX-License-Identifier: Apache-2.0 */
/* The PROXY protocol, versions 1 and 2, of the receiver: what a proxy says of its client before all else. */
#ifndef SECURITY_PROXY_PROTOCOL_H
#define SECURITY_PROXY_PROTOCOL_H

#include <monkey/addr.h>

enum {
    SECURITY_PROXY_V1_MAX = 107, /* its line feed included */
    SECURITY_PROXY_V2_MAX =
        8192 /* the protocol allows 64 KB; certificates of clients are the most there is */
};

struct security_proxy_header {
    bool has_peer;       /* false: the proxy speaks for itself, or does not know */
    bool is_secure;      /* its client speaks TLS with it */
    struct mk_addr peer; /* its client */
    const char *wrong;   /* why it was refused */
};

/* The header at the begin of `in`: its length; 0 when more must come; -1 when it is none, or a bad one. */
int security_proxy_header_parse(mk_str in, struct security_proxy_header *out);

#endif
