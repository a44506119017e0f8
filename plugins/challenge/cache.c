/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

/* The last digits of a token are a part of its MAC. */
static size_t find_slot(mk_str text)
{
    size_t slot = 0;
    for (size_t i = CHALLENGE_TOKEN_LEN - 4; i < CHALLENGE_TOKEN_LEN; i++)
        slot = slot << 4 | ((size_t)mk_char_hex(text.p[i]) & 15);
    return slot % CHALLENGE_CACHE_ENTRIES;
}

static bool is_same_network(const struct mk_addr *a, const struct mk_addr *b)
{
    return a->is_unix == b->is_unix && !memcmp(a->ip, b->ip, sizeof a->ip);
}

const struct challenge_token *challenge_cache_find(const struct challenge_cache *cache,
                                                   const struct challenge_scope *scope, mk_str text)
{
    struct mk_addr client;
    if (text.len != CHALLENGE_TOKEN_LEN)
        return NULL;
    const struct challenge_cache_entry *e = &cache->entries[find_slot(text)];
    mk_addr_client_prefix(&scope->client, &client);
    bool is_found = e->key == scope->key.p && is_same_network(&e->client, &client) &&
                    mk_str_eq(mk_str_of(e->host, e->host_len), scope->host) &&
                    mk_consttime_eq(mk_str_of(e->text, sizeof e->text), text);
    return is_found ? &e->token : NULL;
}

void challenge_cache_store(struct challenge_cache *cache, const struct challenge_scope *scope, mk_str text,
                           const struct challenge_token *pass)
{
    if (scope->host.len > CHALLENGE_CACHE_HOST_MAX || text.len != CHALLENGE_TOKEN_LEN)
        return;
    struct challenge_cache_entry *e = &cache->entries[find_slot(text)];
    *e = (struct challenge_cache_entry){
        .key = scope->key.p, .token = *pass, .host_len = (uint8_t)scope->host.len};
    mk_addr_client_prefix(&scope->client, &e->client);
    memcpy(e->text, text.p, sizeof e->text);
    if (scope->host.len)
        memcpy(e->host, scope->host.p, scope->host.len);
}
