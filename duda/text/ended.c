/* SPDX-License-Identifier: Apache-2.0 */
#include "text/ended.h"

/* A slot: 40 bits identify the session, 24 bits are the minute in which it is over; 0 is an empty one. */
#define TIME_BITS 24
#define TIME_MASK (((uint64_t)1 << TIME_BITS) - 1)

enum { MINUTE_S = 60, TRIES = 32 };

void duda_ended_begin(struct duda_ended *e)
{
    if (!atomic_load(&e->is_ready))
        mk_random(&e->key, sizeof e->key);
    atomic_store(&e->is_ready, 1);
}

static uint64_t hash_of(const struct duda_ended *e, const unsigned char *number)
{
    return mk_hash(&e->key, mk_str_of((const char *)number, DUDA_ENDED_NUMBER));
}

static uint64_t minute(int64_t time)
{
    return (uint64_t)time / MINUTE_S & TIME_MASK;
}

/* Minutes that an entry still counts, this one included; 0: it is empty or over. Minutes wrap every 32 years. */
static uint64_t left_of(uint64_t word, int64_t now)
{
    uint64_t ahead = (word - minute(now)) & TIME_MASK;
    return word && ahead <= TIME_MASK / 2 ? ahead + 1 : 0;
}

bool duda_ended_has(const struct duda_ended *e, const unsigned char number[DUDA_ENDED_NUMBER], int64_t now)
{
    uint64_t hash = hash_of(e, number), tag = hash >> TIME_BITS;
    for (size_t i = 0; i < DUDA_ENDED_SLOTS; i++) {
        uint64_t word = atomic_load(&e->lines[hash % DUDA_ENDED_LINES].slots[i]);
        if (word >> TIME_BITS == tag && left_of(word, now))
            return true;
    }
    return false;
}

/* The slot of the session, an empty one, or the one that is over first. */
static _Atomic uint64_t *choose(struct duda_ended *e, uint64_t hash, int64_t now, uint64_t *word)
{
    _Atomic uint64_t *best = NULL;
    uint64_t best_left = 0;
    for (size_t i = 0; i < DUDA_ENDED_SLOTS; i++) {
        _Atomic uint64_t *slot = &e->lines[hash % DUDA_ENDED_LINES].slots[i];
        uint64_t w = atomic_load(slot);
        bool is_own = w && w >> TIME_BITS == hash >> TIME_BITS;
        if (!best || is_own || left_of(w, now) < best_left) {
            best = slot;
            best_left = left_of(w, now);
            *word = w;
        }
        if (is_own)
            break;
    }
    return best;
}

void duda_ended_add(struct duda_ended *e, const unsigned char number[DUDA_ENDED_NUMBER], int64_t now,
                    int64_t until)
{
    uint64_t hash = hash_of(e, number), entry = (hash >> TIME_BITS) << TIME_BITS | minute(until);
    bool is_kept = until <= now;
    for (unsigned i = 0; i < TRIES && !is_kept; i++) {
        uint64_t word = 0;
        _Atomic uint64_t *slot = choose(e, hash, now, &word);
        is_kept = atomic_compare_exchange_strong(slot, &word, entry);
    }
}
