/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_rate.h"

/* A slot: 24 bits identify the client, 16 bits are the window, 24 bits are the counter; 0 is an empty
 * slot. */
#define COUNT_BITS  24
#define COUNT_MASK  (((uint64_t)1 << COUNT_BITS) - 1)
#define WINDOW_BITS 16
#define WINDOW_MASK (((uint64_t)1 << WINDOW_BITS) - 1)
#define TAG_SHIFT   (COUNT_BITS + WINDOW_BITS)

enum { TRIES = 32 };

void duda_session_rate_init(struct duda_session_rate *b)
{
    if (!atomic_load(&b->is_ready))
        mk_random(&b->key, sizeof b->key);
    atomic_store(&b->is_ready, 1);
}

/* Returns the counter for this window. */
static uint64_t slot_count(uint64_t word, uint64_t window)
{
    return (word >> COUNT_BITS & WINDOW_MASK) == (window & WINDOW_MASK) ? word & COUNT_MASK : 0;
}

/* Returns the slot of the client, or the one with the lowest counter. */
static _Atomic uint64_t *choose_slot(struct duda_session_rate *b, uint64_t hash, uint64_t window,
                                     uint64_t *word)
{
    _Atomic uint64_t *best = NULL;
    for (size_t i = 0; i < DUDA_SESSION_RATE_SLOTS; i++) {
        _Atomic uint64_t *slot = &b->lines[hash % DUDA_SESSION_RATE_LINES].slots[i];
        uint64_t w = atomic_load(slot);
        bool is_own = slot_count(w, window) && w >> TAG_SHIFT == hash >> TAG_SHIFT;
        if (!best || is_own || slot_count(w, window) < slot_count(*word, window)) {
            best = slot;
            *word = w;
        }
        if (is_own)
            break;
    }
    return best;
}

bool duda_session_rate_allow(struct duda_session_rate *b, const struct mk_addr *client, uint64_t window,
                             uint64_t max)
{
    uint64_t hash = mk_hash(&b->key, mk_str_of((const char *)client->ip, sizeof client->ip));
    uint64_t head = hash >> TAG_SHIFT << TAG_SHIFT | (window & WINDOW_MASK) << COUNT_BITS;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t word = 0;
        _Atomic uint64_t *slot = choose_slot(b, hash, window, &word);
        uint64_t n = word >> TAG_SHIFT == hash >> TAG_SHIFT ? slot_count(word, window) : 0;
        if (n >= max || n == COUNT_MASK)
            return false;
        if (atomic_compare_exchange_strong(slot, &word, head | (n + 1)))
            return true;
    }
    return true; /* too many concurrent updates: allow the session */
}
