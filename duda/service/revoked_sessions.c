/* SPDX-License-Identifier: Apache-2.0 */
#include "service/revoked_sessions.h"

/* A slot: 31 bits identify the session, one is set if its user was authenticated, 12 identify the client, 20
 * are the minute of expiry; 0 is an empty slot. */
#define TIME_BITS    20
#define TIME_MASK    (((uint64_t)1 << TIME_BITS) - 1)
#define CLIENT_BITS  12
#define CLIENT_MASK  ((((uint64_t)1 << CLIENT_BITS) - 1) << TIME_BITS)
#define KNOWN        ((uint64_t)1 << (TIME_BITS + CLIENT_BITS))
#define NUMBER_SHIFT (TIME_BITS + CLIENT_BITS + 1)

enum { MINUTE_S = 60, TRIES = 32 };

void duda_revoked_sessions_init(struct duda_revoked_sessions *e)
{
    if (!atomic_load(&e->is_ready))
        mk_random(&e->key, sizeof e->key);
    atomic_store(&e->is_ready, 1);
}

static uint64_t hash_session(const struct duda_revoked_sessions *e, const unsigned char *number)
{
    return mk_hash(&e->key, mk_str_of((const char *)number, DUDA_REVOKED_SESSION_ID));
}

static uint64_t client_bits(const struct duda_revoked_sessions *e, const struct mk_addr *client)
{
    return mk_hash(&e->key, mk_str_of((const char *)client->ip, sizeof client->ip)) & CLIENT_MASK;
}

static uint64_t minute_bits(int64_t time)
{
    return (uint64_t)time / MINUTE_S & TIME_MASK;
}

/* Returns the minutes until the entry expires, including the current one; 0 if it is empty or expired.
 * Minutes wrap around every two years. */
static uint64_t minutes_left(uint64_t word, int64_t now)
{
    uint64_t ahead = (word - minute_bits(now)) & TIME_MASK;
    return word && ahead <= TIME_MASK / 2 ? ahead + 1 : 0;
}

static bool is_same_session(uint64_t word, uint64_t other)
{
    return word >> NUMBER_SHIFT == other >> NUMBER_SHIFT;
}

/* Looks in all slots but `skipped`. */
static bool has_session(const _Atomic uint64_t *slots, size_t skipped, uint64_t entry, int64_t now)
{
    for (size_t i = 0; i < DUDA_REVOKED_SESSIONS_SLOTS; i++) {
        uint64_t word = atomic_load(&slots[i]);
        if (i != skipped && is_same_session(word, entry) && minutes_left(word, now))
            return true;
    }
    return false;
}

bool duda_revoked_sessions_contain(const struct duda_revoked_sessions *e,
                                   const unsigned char number[DUDA_REVOKED_SESSION_ID], int64_t now)
{
    uint64_t hash = hash_session(e, number);
    return has_session(e->lines[hash % DUDA_REVOKED_SESSIONS_LINES].slots, DUDA_REVOKED_SESSIONS_SLOTS, hash,
                       now);
}

/* ---- Choice of a slot ---- */

typedef uint64_t line[DUDA_REVOKED_SESSIONS_SLOTS];

/* Returns the number of entries that the client of `word` has in the bucket, including the new one. */
static unsigned count_client_slots(const line words, uint64_t word, uint64_t entry, int64_t now)
{
    unsigned n = (word & CLIENT_MASK) == (entry & CLIENT_MASK);
    for (size_t i = 0; i < DUDA_REVOKED_SESSIONS_SLOTS; i++)
        n += minutes_left(words[i], now) && (words[i] & CLIENT_MASK) == (word & CLIENT_MASK);
    return n;
}

/* Returns whether the entry `word` is evicted before the entry `other`. */
static bool is_evicted_before(const line words, uint64_t word, uint64_t other, uint64_t entry, int64_t now)
{
    unsigned share = count_client_slots(words, word, entry, now),
             share_of_other = count_client_slots(words, other, entry, now);
    if ((word ^ other) & KNOWN)
        return other & KNOWN;
    return share != share_of_other ? share > share_of_other
                                   : minutes_left(word, now) < minutes_left(other, now);
}

/* Returns the slot of the session, or a free one, or the first to be evicted; DUDA_REVOKED_SESSIONS_SLOTS:
 * the new entry itself is dropped. */
static size_t choose_slot(const line words, uint64_t entry, int64_t now)
{
    size_t best = 0;
    for (size_t i = 0; i < DUDA_REVOKED_SESSIONS_SLOTS; i++)
        if (words[i] && is_same_session(words[i], entry))
            return i;
    for (size_t i = 0; i < DUDA_REVOKED_SESSIONS_SLOTS; i++)
        if (!minutes_left(words[i], now))
            return i;
    for (size_t i = 1; i < DUDA_REVOKED_SESSIONS_SLOTS; i++)
        if (is_evicted_before(words, words[i], words[best], entry, now))
            best = i;
    return is_evicted_before(words, entry, words[best], entry, now) ? DUDA_REVOKED_SESSIONS_SLOTS : best;
}

bool duda_revoked_sessions_add(struct duda_revoked_sessions *e,
                               const unsigned char number[DUDA_REVOKED_SESSION_ID],
                               const struct duda_revoked_session_client *client, int64_t now, int64_t until)
{
    uint64_t hash = hash_session(e, number);
    uint64_t entry = hash >> NUMBER_SHIFT << NUMBER_SHIFT | (client->is_known ? KNOWN : 0) |
                     client_bits(e, client->client) | minute_bits(until);
    _Atomic uint64_t *slots = e->lines[hash % DUDA_REVOKED_SESSIONS_LINES].slots;
    for (unsigned i = 0; i < TRIES && until > now; i++) {
        line words;
        for (size_t k = 0; k < DUDA_REVOKED_SESSIONS_SLOTS; k++)
            words[k] = atomic_load(&slots[k]);
        size_t at = choose_slot(words, entry, now);
        if (at == DUDA_REVOKED_SESSIONS_SLOTS)
            break;
        bool was_revoked = is_same_session(words[at], entry) && minutes_left(words[at], now);
        if (atomic_compare_exchange_strong(&slots[at], &words[at], entry))
            /* Two workers may choose different slots for a session. Each looks for the other's entry after it
             * has written its own, so at least one of them finds it. */
            return !was_revoked && !has_session(slots, at, entry, now);
    }
    return true;
}
