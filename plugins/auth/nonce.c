/* SPDX-License-Identifier: Apache-2.0 */
/* A word of the table contains the nonce's creation time (17 bits of seconds), its identity (13), the highest
 * count (17), and a bit for each of the 17 counts up to that one, set if it was used: clients send requests
 * in parallel, so counts arrive out of order. */
#include "nonce.h"

#include "credentials.h"

#include <monkey/text.h>

#define TIME_MASK  ((UINT64_C(1) << 17) - 1)
#define TAG_MASK   ((UINT64_C(1) << 13) - 1)
#define COUNT_MASK ((UINT64_C(1) << 17) - 1)
#define SEEN_MASK  ((UINT64_C(1) << 17) - 1)

/* SLACK_S allows for workers that read the time at slightly different moments. */
enum { MAC_LEN = 16, SEEN_BITS = 17, TRIES = 16, SLACK_S = 4 };

struct raw {
    uint64_t time, id;
    uint8_t mac[MAC_LEN];
};
_Static_assert(sizeof(struct raw) * 2 == AUTH_NONCE_LEN, "two digits a byte");

static void sign_nonce(const struct auth_shared *s, mk_str realm, struct raw *raw)
{
    mk_str parts[] = {MK_STR("nonce"), realm, mk_str_of((const char *)&raw->time, sizeof raw->time),
                      mk_str_of((const char *)&raw->id, sizeof raw->id)};
    uint8_t mac[AUTH_MAC_LEN];
    auth_hash_mac(s->secret, parts, MK_LEN(parts), mac);
    memcpy(raw->mac, mac, MAC_LEN);
}

void auth_nonce_generate(const struct auth_shared *s, mk_str realm, int64_t now, char out[AUTH_NONCE_LEN])
{
    struct raw raw = {.time = (uint64_t)now};
    struct mk_buf b = mk_buf_fixed(out, AUTH_NONCE_LEN);
    mk_random(&raw.id, sizeof raw.id);
    sign_nonce(s, realm, &raw);
    mk_hex_encode(&b, mk_str_of((const char *)&raw, sizeof raw));
}

bool auth_nonce_parse(const struct auth_shared *s, mk_str realm, mk_str text, struct auth_nonce *out)
{
    struct raw given, due;
    if (!auth_hex_decode(text, (uint8_t *)&given, sizeof given))
        return false;
    due = given;
    sign_nonce(s, realm, &due);
    *out = (struct auth_nonce){given.time, given.id};
    return mk_consttime_eq(mk_str_of((const char *)given.mac, MAC_LEN),
                           mk_str_of((const char *)due.mac, MAC_LEN));
}

static uint64_t nonce_table_key(const struct auth_nonce *n)
{
    return (n->time & TIME_MASK) << 13 | (n->id >> 32 & TAG_MASK);
}

static uint64_t pack_nonce_word(const struct auth_nonce *n, uint64_t count, uint64_t seen)
{
    return nonce_table_key(n) << 34 | count << 17 | seen;
}

/* Returns the word with this count marked as used; 0 if it was used before or is too old to tell. */
static uint64_t mark_count_used(uint64_t word, uint64_t count)
{
    uint64_t highest = word >> 17 & COUNT_MASK, seen = word & SEEN_MASK;
    uint64_t head = word & ~(COUNT_MASK << 17 | SEEN_MASK);
    if (count > highest) {
        uint64_t by = count - highest;
        seen = by < SEEN_BITS ? (seen << by & SEEN_MASK) | 1 : 1;
        return head | count << 17 | seen;
    }
    uint64_t back = highest - count;
    if (back >= SEEN_BITS || seen >> back & 1)
        return 0;
    return word | UINT64_C(1) << back;
}

static int find_nonce_word(const struct auth_bucket *b, const struct auth_nonce *n, uint64_t *word)
{
    for (int i = 0; i < AUTH_WAYS; i++) {
        *word = atomic_load_explicit(&b->way[i], memory_order_relaxed);
        if (*word && *word >> 34 == nonce_table_key(n))
            return i;
    }
    return -1;
}

/* Returns the creation time of the word's nonce. */
static uint64_t nonce_word_time(uint64_t word, int64_t now)
{
    uint64_t latest = (uint64_t)now + SLACK_S;
    return latest - ((latest - (word >> 47)) & TIME_MASK);
}

static int find_oldest_nonce_word(const struct auth_bucket *b, int64_t now, uint64_t *word)
{
    int oldest = 0;
    uint64_t lowest = UINT64_MAX;
    *word = 0;
    for (int i = 0; i < AUTH_WAYS; i++) {
        uint64_t each = atomic_load_explicit(&b->way[i], memory_order_relaxed);
        uint64_t time = each ? nonce_word_time(each, now) : 0;
        if (time < lowest) {
            lowest = time;
            oldest = i;
            *word = each;
        }
    }
    return oldest;
}

/* Records the creation time of an evicted nonce. A nonce that is not in the table may itself have been
 * evicted, unless it is younger than every evicted one. */
static void record_evicted_time(_Atomic uint64_t *forgotten, uint64_t second)
{
    uint64_t before = atomic_load(forgotten);
    while (before < second && !atomic_compare_exchange_weak(forgotten, &before, second))
        ;
}

/* Returns true with the result in *result; false if another worker changed the word first: then try again. */
static bool try_consume_nonce(struct auth_shared *s, const struct auth_nonce *n, uint32_t count, int64_t now,
                              bool *result)
{
    size_t at = n->id % AUTH_BUCKETS;
    struct auth_bucket *b = &s->nonces[at];
    uint64_t word, next;
    int way = find_nonce_word(b, n, &word);
    if (way >= 0) {
        next = mark_count_used(word, count);
        *result = next != 0;
    } else {
        *result = n->time > atomic_load(&s->forgotten[at]);
        way = find_oldest_nonce_word(b, now, &word);
        next = pack_nonce_word(n, count, 1);
        if (*result && word)
            record_evicted_time(&s->forgotten[at], nonce_word_time(word, now));
    }
    return !*result || atomic_compare_exchange_strong(&b->way[way], &word, next);
}

bool auth_nonce_consume(struct auth_shared *s, const struct auth_nonce *nonce, uint32_t count, int64_t now,
                        uint32_t span_s)
{
    bool result = false;
    uint64_t latest = (uint64_t)now + SLACK_S;
    if (count == 0 || count > COUNT_MASK || nonce->time > latest || latest - nonce->time > span_s + SLACK_S)
        return false;
    for (int i = 0; i < TRIES; i++)
        if (try_consume_nonce(s, nonce, count, now, &result))
            return result;
    return false;
}
