/* SPDX-License-Identifier: Apache-2.0 */
/* Every server owns many points on a ring; a key belongs to the server that owns the next point. */
#include "hash_ring.h"

#include <monkey/text.h>
#include <stdlib.h>

/* The hash has a fixed key, not a random one, so that all machines map a key to the same server, even after a
 * restart. */
static uint64_t hash_string(mk_str s)
{
    static const struct mk_hash_key fixed = {0x6d656d6361636865, 0x72696e67};
    return mk_hash(&fixed, s);
}

static int compare_points(const void *a, const void *b)
{
    const struct memcached_hash_ring_point *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->server > y->server) - (x->server < y->server);
}

void memcached_hash_ring_build(struct memcached_hash_ring_point *points, const mk_str *names, unsigned n)
{
    struct memcached_hash_ring_point *p = points;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < MEMCACHED_POINTS; k++) {
            struct mk_buf text = mk_buf_growing(4096);
            mk_buf_add_num(&text, k);
            mk_buf_add_char(&text, '-');
            mk_buf_add(&text, names[i]);
            *p++ = (struct memcached_hash_ring_point){hash_string(mk_buf_str(&text)), i};
            mk_buf_free(&text);
        }
    qsort(points, (size_t)n * MEMCACHED_POINTS, sizeof *points, compare_points);
}

unsigned memcached_hash_ring_find(const struct memcached_hash_ring_point *points, unsigned n, mk_str key)
{
    uint64_t h = hash_string(key);
    size_t low = 0, high = (size_t)n * MEMCACHED_POINTS, all = high;
    if (n < 2)
        return 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle].hash < h)
            low = middle + 1;
        else
            high = middle;
    }
    return points[low < all ? low : 0].server;
}
