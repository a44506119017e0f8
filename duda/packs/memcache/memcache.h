/* SPDX-License-Identifier: Apache-2.0 */
/* A [MEMCACHED] section as a worker has it. */
#ifndef DUDA_MEMCACHE_MEMCACHE_H
#define DUDA_MEMCACHE_MEMCACHE_H

#include "ring.h"
#include "server.h"

struct duda_memcache {
    const struct memcache_settings *settings;
    struct memcache_server *servers;
};

#endif
