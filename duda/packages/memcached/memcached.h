/* SPDX-License-Identifier: Apache-2.0 */
/* A [MEMCACHED] section in a worker. */
#ifndef DUDA_MEMCACHED_MEMCACHED_H
#define DUDA_MEMCACHED_MEMCACHED_H

#include "conn.h"
#include "hash_ring.h"

struct duda_memcached {
    const struct memcached_settings *settings;
    struct memcached_conn *servers;
};

#endif
