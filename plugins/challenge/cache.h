/* SPDX-License-Identifier: Apache-2.0 */
/* The passes that a worker has verified recently: verifying a pass takes five times as many instructions as sending a
 * small file. */
#ifndef CHALLENGE_CACHE_H
#define CHALLENGE_CACHE_H

#include "token.h"

enum { CHALLENGE_CACHE_ENTRIES = 1024, CHALLENGE_CACHE_HOST_MAX = 63 };

struct challenge_cache_entry {
    const char *key; /* address of the key; NULL: empty entry */
    struct challenge_token token;
    struct mk_addr client;
    char text[CHALLENGE_TOKEN_LEN];
    uint8_t host_len;
    char host[CHALLENGE_CACHE_HOST_MAX];
};

struct challenge_cache {
    struct challenge_cache_entry entries[CHALLENGE_CACHE_ENTRIES];
};

/* Returns the pass if challenge_cache_store() was called for this scope and text; otherwise NULL. */
const struct challenge_token *challenge_cache_find(const struct challenge_cache *cache,
                                                   const struct challenge_scope *scope, mk_str text);
/* Stores a valid pass, in place of another one. Only a client that has solved a task can fill the cache. */
void challenge_cache_store(struct challenge_cache *cache, const struct challenge_scope *scope, mk_str text,
                           const struct challenge_token *pass);

#endif
