/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"

#include <monkey/mem.h>
#include <monkey/text.h>

enum { SETS = 128, WAYS = 4 };

struct entry {
    uint8_t mac[AUTH_MAC_LEN];
    uint64_t since_ms;
    bool used;
};

struct auth_cache {
    struct entry at[SETS][WAYS];
};

struct auth_cache *auth_cache_new(void)
{
    return mk_mem_zalloc(1, sizeof(struct auth_cache));
}

void auth_cache_free(struct auth_cache *c)
{
    if (c)
        explicit_bzero(c, sizeof *c);
    mk_mem_free(c);
}

static bool entry_has_mac(const struct entry *e, const uint8_t mac[AUTH_MAC_LEN])
{
    return e->used && mk_consttime_eq(mk_str_of((const char *)e->mac, AUTH_MAC_LEN),
                                      mk_str_of((const char *)mac, AUTH_MAC_LEN));
}

bool auth_cache_has(const struct auth_cache *c, const uint8_t mac[AUTH_MAC_LEN], uint64_t now_ms,
                    uint64_t span_ms)
{
    const struct entry *set = c->at[mac[0] % SETS];
    for (size_t i = 0; i < WAYS; i++)
        if (entry_has_mac(&set[i], mac) && now_ms - set[i].since_ms < span_ms)
            return true;
    return false;
}

void auth_cache_add(struct auth_cache *c, const uint8_t mac[AUTH_MAC_LEN], uint64_t now_ms)
{
    struct entry *set = c->at[mac[0] % SETS], *e = &set[0];
    for (size_t i = 0; i < WAYS; i++) {
        if (entry_has_mac(&set[i], mac)) {
            e = &set[i];
            break;
        }
        if (e->used && (!set[i].used || set[i].since_ms < e->since_ms))
            e = &set[i];
    }
    memcpy(e->mac, mac, AUTH_MAC_LEN);
    e->since_ms = now_ms;
    e->used = true;
}
