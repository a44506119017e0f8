/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by all workers: a secret, failed attempts by address, and used nonces. Everything except the
 * secret is initially zero. The state outlives configurations and workers. A worker may die between any two
 * instructions, so each entry is one 64-bit word, which is changed atomically. */
#ifndef AUTH_SHARED_STATE_H
#define AUTH_SHARED_STATE_H

#include "hash.h"

#include <stdatomic.h>

/* A bucket is one cache line. */
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
        forgotten[AUTH_BUCKETS]; /* creation second of the youngest nonce evicted from the bucket */
};

#endif
