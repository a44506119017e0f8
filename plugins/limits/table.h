/* SPDX-License-Identifier: Apache-2.0 */
/* How much everybody has had lately, in memory that all workers share. Of a fixed size: whoever is new there
 * takes the place of the one who would be forgotten soonest. So nobody is kept out because it is full, and
 * who is over his limit by most is the last to be forgotten. Nobody waits for anybody, and who dies in the
 * middle leaves nothing half done: all that is known of one is a single word.
 *
 * That word is a time: when he would have been served if he had come no faster than he may (GCRA). Each that
 * is served moves it by what it costs; who is further ahead of now than his tolerance has to wait. */
#ifndef LIMITS_TABLE_H
#define LIMITS_TABLE_H

#include <monkey/text.h>
#include <stdatomic.h>

enum {
    LIMITS_TICKS = 256,    /* of a millisecond: what times are counted in */
    LIMITS_LINE_SLOTS = 8, /* a line of the cache */
    LIMITS_LINES = 16384
};

/* The longest time that anybody may be ahead: a limit that would need more cannot be had. */
#define LIMITS_AHEAD_MAX ((uint64_t)2 * 86400 * 1000 * LIMITS_TICKS)

struct limits_line {
    _Atomic uint64_t slots[LIMITS_LINE_SLOTS];
};

struct limits_table {
    struct mk_hash_key key; /* nobody outside can tell who meets whom */
    uint64_t is_ready;
    uint64_t room[5]; /* so that lines are lines of the cache */
    struct limits_line lines[LIMITS_LINES];
};

struct limits_charge {
    uint64_t cost, tolerance;
    uint64_t wait_max; /* who would have to wait for longer is not charged */
};

/* What he has to wait, in ticks; above wait_max he was not charged. `who` is a hash under the key of the
 * table. */
uint64_t limits_line_charge(struct limits_line *line, uint64_t who, uint64_t now_ms,
                            const struct limits_charge *c);
/* He did not need so much after all. */
void limits_line_refund(struct limits_line *line, uint64_t who, uint64_t now_ms, uint64_t cost);

static inline struct limits_line *limits_table_line(struct limits_table *t, uint64_t who)
{
    return &t->lines[who % LIMITS_LINES];
}

#endif
