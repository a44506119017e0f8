/* SPDX-License-Identifier: Apache-2.0 */
/* A table word contains the end of the block (26 bits of seconds), the client (28) and the number of attempts
 * (10). A full bucket evicts the client with the fewest attempts, so a flood of addresses cannot evict a
 * blocked client until each address has made as many wrong attempts. Attackers cannot choose a bucket,
 * because the hash is keyed. */
#include "attempts.h"

#define END_MASK  ((UINT64_C(1) << 26) - 1)
#define TAG_MASK  ((UINT64_C(1) << 28) - 1)
#define COUNT_MAX ((UINT64_C(1) << 10) - 1)

enum { TRIES = 16 }; /* retries when other workers change the word at the same time */

static uint64_t pack_counter(uint64_t end, uint64_t tag, uint64_t count)
{
    return (end & END_MASK) << 38 | tag << 10 | count;
}

static uint64_t counter_tag(uint64_t word)
{
    return word >> 10 & TAG_MASK;
}

static uint64_t counter_attempts(uint64_t word)
{
    return word & COUNT_MAX;
}

/* Returns the remaining seconds of the block; 0 if it has ended or the clock was set back. */
static uint32_t blocked_seconds_left(uint64_t word, int64_t now)
{
    uint64_t seconds = ((word >> 38) - (uint64_t)now) & END_MASK;
    return word && seconds <= AUTH_SPAN_MAX_S ? (uint32_t)seconds : 0;
}

static struct auth_bucket *key_bucket(struct auth_shared *s, const struct auth_attempt_key *c)
{
    return &s->attempts[c->hash % AUTH_BUCKETS];
}

static uint64_t key_tag(const struct auth_attempt_key *c)
{
    return c->hash >> 32 & TAG_MASK;
}

struct auth_attempt_key auth_attempts_key(const struct auth_shared *s, const struct mk_addr *peer,
                                          uint32_t limit, uint32_t span_s)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    struct auth_attempt_key c = {.limit = limit, .span_s = span_s};
    size_t len = memcmp(peer->ip, v4, sizeof v4) == 0 || peer->is_unix ? sizeof peer->ip : 8;
    mk_str parts[] = {MK_STR("attempts"), mk_str_of((const char *)peer->ip, len),
                      mk_str_of((const char *)&c.limit, sizeof c.limit),
                      mk_str_of((const char *)&c.span_s, sizeof c.span_s),
                      mk_str_of((const char *)&peer->is_unix, 1)};
    uint8_t mac[AUTH_MAC_LEN];
    auth_hash_mac(s->secret, parts, MK_LEN(parts), mac);
    memcpy(&c.hash, mac, sizeof c.hash);
    return c;
}

/* Returns the index of the client's counter in the bucket, and stores the counter in *word. Returns -1 if the
 * client has no counter. */
static int find_counter(const struct auth_bucket *b, const struct auth_attempt_key *c, int64_t now,
                        uint64_t *word)
{
    for (int i = 0; i < AUTH_WAYS; i++) {
        *word = atomic_load_explicit(&b->way[i], memory_order_relaxed);
        if (blocked_seconds_left(*word, now) && counter_tag(*word) == key_tag(c))
            return i;
    }
    return -1;
}

static int find_evictable_counter(const struct auth_bucket *b, int64_t now, uint64_t *word)
{
    int victim = 0;
    uint64_t lowest = UINT64_MAX;
    *word = 0;
    for (int i = 0; i < AUTH_WAYS; i++) {
        uint64_t each = atomic_load_explicit(&b->way[i], memory_order_relaxed);
        uint64_t worth = blocked_seconds_left(each, now)
                             ? counter_attempts(each) << 32 | blocked_seconds_left(each, now)
                             : 0;
        if (worth < lowest) {
            lowest = worth;
            victim = i;
            *word = each;
        }
    }
    return victim;
}

static bool compare_exchange_counter(struct auth_bucket *b, int way, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&b->way[way], &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

uint32_t auth_attempts_blocked_s(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now)
{
    uint64_t word;
    if (!c->limit || find_counter(key_bucket(s, c), c, now, &word) < 0 || counter_attempts(word) < c->limit)
        return 0;
    return blocked_seconds_left(word, now);
}

uint32_t auth_attempts_charge(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now)
{
    struct auth_bucket *b = key_bucket(s, c);
    for (int i = 0; c->limit && i < TRIES; i++) {
        uint64_t word, next;
        int way = find_counter(b, c, now, &word);
        if (way >= 0 && counter_attempts(word) >= c->limit)
            return blocked_seconds_left(word, now);
        if (way >= 0) {
            next = word + 1;
        } else {
            way = find_evictable_counter(b, now, &word);
            next = pack_counter((uint64_t)now + c->span_s, key_tag(c), 1);
        }
        if (compare_exchange_counter(b, way, word, next))
            return 0;
    }
    return 0;
}

void auth_attempts_refund(struct auth_shared *s, const struct auth_attempt_key *c, int64_t now)
{
    struct auth_bucket *b = key_bucket(s, c);
    for (int i = 0; c->limit && i < TRIES; i++) {
        uint64_t word;
        int way = find_counter(b, c, now, &word);
        if (way < 0 || counter_attempts(word) == 0 || compare_exchange_counter(b, way, word, word - 1))
            return;
    }
}
