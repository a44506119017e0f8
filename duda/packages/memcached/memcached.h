/* SPDX-License-Identifier: Apache-2.0 */
/* A [MEMCACHED] section in a worker. */
#ifndef DUDA_MEMCACHED_MEMCACHED_H
#define DUDA_MEMCACHED_MEMCACHED_H

#include "hash_ring.h"
#include "server.h"

struct duda_memcached {
    const struct memcached_settings *settings;
    struct memcached_server *servers;
};

#endif
