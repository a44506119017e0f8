/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a server as written in the configuration. */
#ifndef MK_UPSTREAM_ENDPOINT_H
#define MK_UPSTREAM_ENDPOINT_H

#include <monkey/config.h>

struct mk_endpoint {
    mk_str host; /* name or address; absent: a unix socket */
    mk_str path; /* path of the unix socket */
    uint16_t port;
};

/* Parses ADDRESS:PORT, HOST:PORT, [ADDRESS6]:PORT or unix:/path; a missing port becomes 0. `host` and `path`
 * are slices of `text`, without a terminating NUL. False: invalid. */
bool mk_endpoint_parse(struct mk_endpoint *e, mk_str text);

#endif
