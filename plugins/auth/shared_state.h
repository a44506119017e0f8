/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by all workers: a secret, failed attempts by address, and used nonces. Zeroed at first
 * except for the secret. It outlives configurations and workers, which may die between any two
 * instructions: each fact is one 64-bit word, changed atomically. */
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
        forgotten[AUTH_BUCKETS]; /* second of the youngest nonce that left its bucket for others */
};

#endif
