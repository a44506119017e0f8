/* SPDX-License-Identifier: Apache-2.0 */
/* Consistent hashing of keys to servers. All machines with the same list of server names get the same
 * result. */
#ifndef DUDA_MEMCACHED_HASH_RING_H
#define DUDA_MEMCACHED_HASH_RING_H

#include <monkey/str.h>
#include <stdint.h>

enum { MEMCACHED_SERVERS_MAX = 64, MEMCACHED_POINTS = 160 };

struct memcached_hash_ring_point {
    uint64_t hash;
    unsigned server;
};

/* Fills MEMCACHED_POINTS elements for each of the n names. */
void memcached_hash_ring_build(struct memcached_hash_ring_point *points, const mk_str *names, unsigned n);
/* Returns the index of the server for the key. `n` is the number of servers. */
unsigned memcached_hash_ring_find(const struct memcached_hash_ring_point *points, unsigned n, mk_str key);

#endif
