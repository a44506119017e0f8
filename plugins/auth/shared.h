/* SPDX-License-Identifier: Apache-2.0 */
/* What all workers know together: a secret, how often an address was wrong, and which nonces were used how
 * far. All zero but the secret at first; it outlives configurations and workers, which may die between any
 * two instructions: each fact is one word of 64 bits, changed as a whole. */
#ifndef AUTH_SHARED_H
#define AUTH_SHARED_H

#include "hash.h"

#include <stdatomic.h>

/* One bucket is one line of the processor's cache. */
enum { AUTH_BUCKETS = 1024, AUTH_WAYS = 8 };

struct auth_bucket {
    _Atomic uint64_t way[AUTH_WAYS];
};

struct auth_shared {
    _Atomic uint32_t has_secret;
    uint8_t secret[AUTH_KEY_LEN];
    struct auth_bucket attempts[AUTH_BUCKETS];
    struct auth_bucket nonces[AUTH_BUCKETS];
    _Atomic uint64_t
        forgotten[AUTH_BUCKETS]; /* second of the youngest nonce that left its bucket for others */
};

#endif
