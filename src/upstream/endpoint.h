/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server is, as a configuration writes it. */
#ifndef MK_UPSTREAM_ENDPOINT_H
#define MK_UPSTREAM_ENDPOINT_H

#include <monkey/config.h>

struct mk_endpoint {
    mk_str host; /* a name or an address; absent: a unix socket */
    mk_str path; /* of the unix socket */
    uint16_t port;
};

/* Reads ADDRESS:PORT, HOST:PORT, [ADDRESS6]:PORT or unix:/path; a port may be missing: it is 0 then. The
 * slices of `text` end with no NUL. False: it is none of these. */
bool mk_endpoint_parse(struct mk_endpoint *e, mk_str text);

#endif
