/* SPDX-License-Identifier: Apache-2.0 */
#include "rate_table.h"

/* In a slot, 24 bits identify the client (0: empty), and 40 bits hold its time, which wraps every 50 days. */
#define TIME_BITS 40
#define TIME_MASK (((uint64_t)1 << TIME_BITS) - 1)

enum { TRIES = 32 };

/* Workers read the clock once per iteration of their event loops, so a time that one worker has stored may be
 * further ahead for another worker: at most this much. */
#define SKEW_MAX ((uint64_t)60 * 1000 * LIMITS_TICKS)

static uint64_t subject_tag(uint64_t subject)
{
    uint64_t tag = subject >> TIME_BITS;
    return tag ? tag : 1;
}

static uint64_t ms_to_ticks(uint64_t now_ms)
{
    return now_ms * LIMITS_TICKS & TIME_MASK;
}

/* Returns how far the client's time is ahead of now. A result above the maximum means that the time is long
 * past, and has wrapped. */
static uint64_t ticks_ahead_of_now(uint64_t word, uint64_t now, uint64_t most)
{
    uint64_t ahead = (word - now) & TIME_MASK;
    return ahead <= most ? ahead : 0;
}

/* Returns the client's slot, or the slot that the client may replace. */
static _Atomic uint64_t *find_slot(struct limits_bucket *line, uint64_t tag, uint64_t now, uint64_t *word)
{
    _Atomic uint64_t *best = NULL;
    uint64_t best_word = 0, best_ahead = UINT64_MAX;
    for (size_t i = 0; i < LIMITS_BUCKET_SLOTS; i++) {
        uint64_t w = atomic_load_explicit(&line->slots[i], memory_order_relaxed);
        uint64_t ahead = ticks_ahead_of_now(w, now, LIMITS_AHEAD_MAX);
        if (w >> TIME_BITS == tag) {
            *word = w;
            return &line->slots[i];
        }
        if (w >> TIME_BITS == 0)
            ahead = 0;
        if (ahead < best_ahead) {
            best = &line->slots[i];
            best_word = w;
            best_ahead = ahead;
        }
    }
    *word = best_word;
    return best;
}

static bool replace_slot(_Atomic uint64_t *slot, uint64_t word, uint64_t tag, uint64_t time)
{
    return atomic_compare_exchange_strong_explicit(slot, &word, tag << TIME_BITS | (time & TIME_MASK),
                                                   memory_order_relaxed, memory_order_relaxed);
}

uint64_t limits_bucket_charge(struct limits_bucket *line, uint64_t subject, uint64_t now_ms,
                              const struct limits_charge *c)
{
    uint64_t tag = subject_tag(subject), now = ms_to_ticks(now_ms),
             most = c->tolerance + c->wait_max + c->cost;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t word;
        _Atomic uint64_t *slot = find_slot(line, tag, now, &word);
        uint64_t ahead = word >> TIME_BITS == tag ? ticks_ahead_of_now(word, now, most + SKEW_MAX) : 0;
        ahead = ahead < most ? ahead : most;
        uint64_t wait = ahead > c->tolerance ? ahead - c->tolerance : 0;
        if (wait > c->wait_max || replace_slot(slot, word, tag, now + ahead + c->cost))
            return wait;
    }
    return 0; /* too many concurrent changes: let the request pass */
}

void limits_bucket_refund(struct limits_bucket *line, uint64_t subject, uint64_t now_ms, uint64_t cost)
{
    uint64_t tag = subject_tag(subject), now = ms_to_ticks(now_ms), word;
    for (unsigned i = 0; i < TRIES; i++) {
        _Atomic uint64_t *slot = find_slot(line, tag, now, &word);
        uint64_t ahead = ticks_ahead_of_now(word, now, LIMITS_AHEAD_MAX);
        if (word >> TIME_BITS != tag ||
            replace_slot(slot, word, tag, now + (ahead > cost ? ahead - cost : 0)))
            return;
    }
}
