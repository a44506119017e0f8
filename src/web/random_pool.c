/* SPDX-License-Identifier: Apache-2.0 */
#include "web/random_pool.h"

#include <monkey/text.h>

const char *mk_random_pool_get(struct mk_random_pool *pool, size_t n)
{
    if (pool->n_left < n) {
        mk_random(pool->bytes, sizeof pool->bytes);
        pool->n_left = sizeof pool->bytes;
    }
    pool->n_left -= n;
    return pool->bytes + pool->n_left;
}
