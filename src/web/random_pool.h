/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes of one worker, fetched in batches. */
#ifndef MK_WEB_RANDOM_POOL_H
#define MK_WEB_RANDOM_POOL_H

#include <stddef.h>

enum { MK_RANDOM_POOL_BYTES = 512 }; /* fetched by one system call */

/* Each byte is used once. */
struct mk_random_pool {
    size_t n_left; /* unused bytes, at the beginning of `bytes` */
    char bytes[MK_RANDOM_POOL_BYTES];
};

/* Returns `n` random bytes (at most MK_RANDOM_POOL_BYTES), valid until the next call. */
const char *mk_random_pool_get(struct mk_random_pool *pool, size_t n);

#endif
