/* SPDX-License-Identifier: Apache-2.0 */
/* Which server has which key: consistent hashing. All machines with the same names agree. */
#ifndef DUDA_MEMCACHE_RING_H
#define DUDA_MEMCACHE_RING_H

#include <monkey/str.h>
#include <stdint.h>

enum { MEMCACHE_SERVERS_MAX = 64, MEMCACHE_POINTS = 160 };

struct memcache_point {
    uint64_t hash;
    unsigned server;
};

/* Fills MEMCACHE_POINTS for each of the n names. */
void memcache_ring_make(struct memcache_point *points, const mk_str *names, unsigned n);
/* The index of the server that has the key. n: servers. */
unsigned memcache_ring_find(const struct memcache_point *points, unsigned n, mk_str key);

#endif
