/* SPDX-License-Identifier: Apache-2.0 */
/* The permissions that a worker reuses: a bounded table, keyed by a MAC of the request's inputs. */
#ifndef FORWARD_AUTH_CACHE_H
#define FORWARD_AUTH_CACHE_H

#include "answer.h"

enum {
    FORWARD_AUTH_KEY_LEN = 32,
    FORWARD_AUTH_CACHE_SETS = 256,
    FORWARD_AUTH_CACHE_WAYS = 4,
    FORWARD_AUTH_CACHED_MAX = 4096, /* size of an answer; larger ones are not cached */
};

struct forward_auth_cache_entry {
    char key[FORWARD_AUTH_KEY_LEN];
    uint64_t expires_ms;
    struct forward_auth_answer *answer; /* NULL: empty */
};

struct forward_auth_cache {
    struct forward_auth_cache_entry at[FORWARD_AUTH_CACHE_SETS][FORWARD_AUTH_CACHE_WAYS];
};

/* NULL: not cached, or expired. The cache keeps its reference. */
struct forward_auth_answer *forward_auth_cache_find(const struct forward_auth_cache *c, const char *key,
                                                    uint64_t now_ms);
/* Replaces the entry of the key, or in a full set the entry that expires first. Only permissions without
 * cookies are stored. */
void forward_auth_cache_store(struct forward_auth_cache *c, const char *key,
                              struct forward_auth_answer *answer, uint64_t now_ms, uint64_t ttl_ms);
void forward_auth_cache_clear(struct forward_auth_cache *c);

#endif
