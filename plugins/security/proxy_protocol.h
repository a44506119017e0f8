/* SPDX-License-Identifier: Apache-2.0 */
/* Receiver of the PROXY protocol, versions 1 and 2: client information sent by a proxy first. */
#ifndef SECURITY_PROXY_PROTOCOL_H
#define SECURITY_PROXY_PROTOCOL_H

#include <monkey/addr.h>

enum {
    SECURITY_PROXY_V1_MAX = 107, /* including its line feed */
    SECURITY_PROXY_V2_MAX = 8192 /* the protocol allows 64 KB; client certificates are the largest content */
};

struct security_proxy_header {
    bool has_peer;       /* false: the proxy speaks for itself, or does not know */
    bool is_secure;      /* its client uses TLS */
    struct mk_addr peer; /* its client */
    const char *wrong;   /* why it was rejected */
};

/* Parses the header at the beginning of `in`: returns its length; 0: incomplete; -1: missing or invalid. */
int security_proxy_header_parse(mk_str in, struct security_proxy_header *out);

#endif
