/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the PROXY protocol, versions 1 and 2, in which a proxy first sends information about its client. */
#ifndef SECURITY_PROXY_PROTOCOL_H
#define SECURITY_PROXY_PROTOCOL_H

#include <monkey/addr.h>

enum {
    SECURITY_PROXY_V1_MAX = 107, /* length including the line feed */
    SECURITY_PROXY_V2_MAX = 8192 /* the protocol allows 64 KB; client certificates are the largest content */
};

struct security_proxy_header {
    bool has_peer;       /* false: the proxy itself connects, or does not know its client */
    bool is_secure;      /* the client uses TLS */
    struct mk_addr peer; /* address of the client */
    const char *wrong;   /* why the header was rejected */
};

/* Parses the header at the beginning of `in`. Returns its length, 0 if it is incomplete, or -1 if it is
 * missing or invalid. */
int security_proxy_header_parse(mk_str in, struct security_proxy_header *out);

#endif
