/* SPDX-License-Identifier: Apache-2.0 */
/* A host with an optional port, as in the Host header and in the authority of a request target (RFC 9110,
 * section 7.2; RFC 3986, sections 3.2.2 and 3.2.3). */
#ifndef MK_HTTP_AUTHORITY_H
#define MK_HTTP_AUTHORITY_H

#include "base/str.h"

enum { MK_PORT_NONE = 0x10000 }; /* no port was given */

/* Parses `host[:port]`: a name of letters, digits, '-', '.' and '_' with no empty label but the last, an IPv4
 * address, or an IPv6 address in brackets, which stay part of *host. An empty port counts as none: *port =
 * MK_PORT_NONE. Returns 0, or 400 for anything else, including an empty host and ports above 65535. */
int mk_authority_parse(mk_str authority, mk_str *host, uint32_t *port) MK_MUST_USE;

/* The last parsed authority; all zero: none. */
struct mk_authority_cache {
    char text[64];
    uint32_t len, host_len, port;
};
/* Like mk_authority_parse(), but cached, because nearly all requests have the same host as the previous
 * request. */
int mk_authority_parse_cached(struct mk_authority_cache *last, mk_str authority, mk_str *host,
                              uint32_t *port) MK_MUST_USE;

#endif
