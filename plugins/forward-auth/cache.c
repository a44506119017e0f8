/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

static bool entry_matches(const struct forward_auth_cache_entry *e, const char *key)
{
    return e->answer && memcmp(e->key, key, FORWARD_AUTH_KEY_LEN) == 0;
}

struct forward_auth_answer *forward_auth_cache_find(const struct forward_auth_cache *c, const char *key,
                                                    uint64_t now_ms)
{
    const struct forward_auth_cache_entry *set = c->at[(unsigned char)key[0]];
    for (unsigned i = 0; i < FORWARD_AUTH_CACHE_WAYS; i++)
        if (entry_matches(&set[i], key))
            return now_ms < set[i].expires_ms ? set[i].answer : NULL;
    return NULL;
}

static struct forward_auth_cache_entry *select_entry(struct forward_auth_cache_entry *set, const char *key)
{
    struct forward_auth_cache_entry *first = set;
    for (unsigned i = 0; i < FORWARD_AUTH_CACHE_WAYS; i++) {
        if (entry_matches(&set[i], key))
            return &set[i];
        if (set[i].expires_ms < first->expires_ms) /* an empty entry expires at 0 */
            first = &set[i];
    }
    return first;
}

void forward_auth_cache_store(struct forward_auth_cache *c, const char *key,
                              struct forward_auth_answer *answer, uint64_t now_ms, uint64_t ttl_ms)
{
    if (answer->status != 200 || answer->sets_cookies || answer->size > FORWARD_AUTH_CACHED_MAX)
        return;
    struct forward_auth_cache_entry *e = select_entry(c->at[(unsigned char)key[0]], key);
    forward_auth_answer_unref(e->answer);
    memcpy(e->key, key, sizeof e->key);
    e->answer = forward_auth_answer_ref(answer);
    e->expires_ms = now_ms + ttl_ms;
}

void forward_auth_cache_clear(struct forward_auth_cache *c)
{
    for (unsigned i = 0; i < FORWARD_AUTH_CACHE_SETS; i++)
        for (unsigned k = 0; k < FORWARD_AUTH_CACHE_WAYS; k++) {
            forward_auth_answer_unref(c->at[i][k].answer);
            c->at[i][k] = (struct forward_auth_cache_entry){0};
        }
}
