/* SPDX-License-Identifier: Apache-2.0 */
#include "service/rate_table.h"

/* A slot: 26 bits identify the key, 20 are the second in which the window began, 18 the number of uses; 0 is an
 * empty slot. Seconds wrap around after 12 days. */
#define USES_BITS 18
#define TIME_BITS 20
#define USES_MASK (((uint64_t)1 << USES_BITS) - 1)
#define TIME_MASK (((uint64_t)1 << TIME_BITS) - 1)
#define KEY_SHIFT (USES_BITS + TIME_BITS)

enum { TRIES = 64 }; /* after that many lost races, a use is not counted */

_Static_assert((int)DUDA_RATE_MAX == (int)USES_MASK, "the number of uses has 18 bits");
_Static_assert((int)DUDA_RATE_WINDOW_MAX_S < (int)(TIME_MASK / 2),
               "a window is shorter than the range of times");

void duda_rate_table_init(struct duda_rate_table *t)
{
    if (!atomic_load(&t->is_ready))
        mk_random(&t->key, sizeof t->key);
    atomic_store(&t->is_ready, 1);
}

bool duda_rate_parse(mk_str text, struct duda_rate *out)
{
    static const struct {
        mk_str name;
        uint32_t seconds;
    } units[] = {{MK_STR_INIT("second"), 1},
                 {MK_STR_INIT("minute"), 60},
                 {MK_STR_INIT("hour"), 3600},
                 {MK_STR_INIT("day"), 86400}};
    uint64_t max = 0;
    mk_str number = mk_str_cut(&text, '/');
    if (!mk_num_parse(number, &max) || max == 0 || max > DUDA_RATE_MAX)
        return false;
    for (size_t i = 0; i < MK_LEN(units); i++)
        if (text.p && mk_str_eq(text, units[i].name)) {
            *out = (struct duda_rate){(uint32_t)max, units[i].seconds};
            return true;
        }
    return false;
}

/* Returns the age of the window in seconds. If the clock was set back, the age is large, and the window
 * ends. */
static uint32_t window_age(uint64_t word, int64_t now)
{
    return (uint32_t)(((uint64_t)now - (word >> USES_BITS)) & TIME_MASK);
}

static bool is_current(uint64_t word, uint64_t hash, const struct duda_rate *rate, int64_t now)
{
    return word && word >> KEY_SHIFT == hash >> KEY_SHIFT && window_age(word, now) < rate->window_s;
}

/* Returns whether the entry `word` is evicted before the entry `other`. The table does not store the windows
 * of the limits, so their entries are compared by the number of uses. */
static bool is_evicted_before(uint64_t word, uint64_t other)
{
    return (word & USES_MASK) < (other & USES_MASK);
}

/* Returns the index of the key's slot, else of a free or expired slot, else of the slot to evict. */
static size_t choose_slot(const uint64_t *words, uint64_t hash, int64_t now)
{
    size_t best = 0;
    for (size_t i = 0; i < DUDA_RATE_SLOTS; i++)
        if (words[i] && words[i] >> KEY_SHIFT == hash >> KEY_SHIFT)
            return i;
    for (size_t i = 0; i < DUDA_RATE_SLOTS; i++)
        if (!words[i] || window_age(words[i], now) >= DUDA_RATE_WINDOW_MAX_S)
            return i;
    for (size_t i = 1; i < DUDA_RATE_SLOTS; i++)
        if (is_evicted_before(words[i], words[best]))
            best = i;
    return best;
}

static void describe_state(uint64_t word, const struct duda_rate *rate, int64_t now,
                           struct duda_rate_state *out)
{
    uint32_t uses = (uint32_t)(word & USES_MASK);
    out->remaining = uses < rate->max ? rate->max - uses : 0;
    out->reset_s = rate->window_s - window_age(word, now);
}

bool duda_rate_table_use(struct duda_rate_table *t, mk_str key, const struct duda_rate *rate, int64_t now,
                         struct duda_rate_state *out)
{
    uint64_t hash = mk_hash(&t->key, key), next = 0;
    _Atomic uint64_t *slots = t->lines[hash % DUDA_RATE_LINES].slots;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t words[DUDA_RATE_SLOTS];
        for (size_t k = 0; k < DUDA_RATE_SLOTS; k++)
            words[k] = atomic_load(&slots[k]);
        size_t at = choose_slot(words, hash, now);
        bool counts = is_current(words[at], hash, rate, now);
        if (counts && (words[at] & USES_MASK) >= rate->max) {
            describe_state(words[at], rate, now, out);
            return false;
        }
        next = counts ? words[at] + 1
                      : hash >> KEY_SHIFT << KEY_SHIFT | ((uint64_t)now & TIME_MASK) << USES_BITS | 1;
        if (atomic_compare_exchange_strong(&slots[at], &words[at], next))
            break;
    }
    describe_state(next, rate, now, out);
    return true;
}
