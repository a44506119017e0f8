/* SPDX-License-Identifier: Apache-2.0 */
/* The servers that a source of discovery.h lists. */
#ifndef MK_UPSTREAM_DISCOVERED_H
#define MK_UPSTREAM_DISCOVERED_H

#include "upstream/upstream_settings.h"

struct mk_discovered_server {
    char name[MK_SERVER_NAME_MAX];
    unsigned weight;
    bool is_backup;
};

struct mk_discovered {
    bool is_partial; /* a part of the lookup failed */
    bool keeps[2];   /* the lookup of IPv4, IPv6 addresses failed: missing servers may still exist */
    unsigned n;
    unsigned n_listed; /* may be more than `of` has room for */
    struct mk_discovered_server of[MK_SERVERS_MAX];
};

#endif
