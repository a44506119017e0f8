/* SPDX-License-Identifier: Apache-2.0 */
/* The rate table, in memory shared by all workers. Its size is fixed: a new client replaces the client whose
 * entry would expire first. A full table therefore rejects no client, and evicts the client furthest over its
 * limit last. The table is lock-free: a client's state is one word, so a worker that dies at any point leaves
 * a consistent table.
 *
 * The word is a time: when the client's last request would have been served at exactly the permitted rate
 * (GCRA). Each request advances the time by its cost. A client has to wait if its time is further ahead of
 * now than its tolerance. */
#ifndef LIMITS_RATE_TABLE_H
#define LIMITS_RATE_TABLE_H

#include <monkey/text.h>
#include <stdatomic.h>

enum {
    LIMITS_TICKS = 256,      /* ticks per millisecond; the unit of all times */
    LIMITS_BUCKET_SLOTS = 8, /* a bucket is one cache line */
    LIMITS_BUCKETS = 16384
};

/* A client's time may be at most two days ahead of now. Limits that need more are configuration errors. */
#define LIMITS_AHEAD_MAX ((uint64_t)2 * 86400 * 1000 * LIMITS_TICKS)

struct limits_bucket {
    _Atomic uint64_t slots[LIMITS_BUCKET_SLOTS];
};

struct limits_table {
    struct mk_hash_key key; /* secret, so that clients cannot choose their bucket */
    uint64_t is_ready;
    uint64_t padding[5]; /* pads the header to whole cache lines */
    struct limits_bucket lines[LIMITS_BUCKETS];
};

struct limits_charge {
    uint64_t cost, tolerance;
    uint64_t wait_max; /* a client that would have to wait longer is not charged */
};

/* Returns how long the client has to wait, in ticks. If that exceeds wait_max, the client was not charged.
 * `subject` is a hash with the table's key. */
uint64_t limits_bucket_charge(struct limits_bucket *line, uint64_t subject, uint64_t now_ms,
                              const struct limits_charge *c);
/* Refunds the part of a charge that the client did not use. */
void limits_bucket_refund(struct limits_bucket *line, uint64_t subject, uint64_t now_ms, uint64_t cost);

static inline struct limits_bucket *limits_table_bucket(struct limits_table *t, uint64_t subject)
{
    return &t->lines[subject % LIMITS_BUCKETS];
}

#endif
