/* SPDX-License-Identifier: Apache-2.0 */
/* The number of subscribers of each topic, in memory that all workers share. Each worker writes only its own
 * row, which belongs to its crash slot, and readers add up the rows of live workers. So a worker may die at any
 * instruction: its counts disappear with it. */
#ifndef DUDA_SERVICE_SUBSCRIBER_COUNTS_H
#define DUDA_SERVICE_SUBSCRIBER_COUNTS_H

#include <monkey/text.h>

#include "service/crash_table.h"

enum {
    DUDA_SUBSCRIBER_ROWS = DUDA_CRASH_WORKERS_MAX * DUDA_CRASH_SLOTS_PER_WORKER,
    DUDA_SUBSCRIBER_TOPICS = 4096, /* topics that one worker can count; a power of two */
};

struct duda_subscriber_counts_memory {
    struct mk_hash_key key; /* secret, because clients may choose names of topics */
    _Atomic uint32_t is_ready;
    _Atomic uint32_t n_rows;                    /* rows that workers have had so far */
    _Atomic int64_t pids[DUDA_SUBSCRIBER_ROWS]; /* the process that has written the row; 0: none */
    struct duda_subscriber_row {
        struct {
            _Atomic uint64_t hash; /* of the topic; 0: this and all later entries of the chain are unused */
            _Atomic uint64_t n;
        } topics[DUDA_SUBSCRIBER_TOPICS];
    } rows[DUDA_SUBSCRIBER_ROWS];
};

/* One worker's view of the shared memory. */
struct duda_subscriber_counts {
    struct duda_subscriber_counts_memory *memory;
    const struct duda_crash_table *crash_table;
    struct duda_subscriber_row *own; /* NULL: the worker has no crash slot */
    _Atomic int64_t *own_pid;
    size_t n_topics; /* topics in the own row that have subscribers */
};

/* Initializes zeroed memory; memory that is already in use stays unchanged. Called in the master, before
 * workers start. */
void duda_subscriber_counts_init(struct duda_subscriber_counts_memory *memory);
/* Clears the row of this worker. `slot` is its crash slot; NULL: its subscribers are not counted. */
void duda_subscriber_counts_open(struct duda_subscriber_counts *c,
                                 struct duda_subscriber_counts_memory *memory,
                                 const struct duda_crash_table *crash_table,
                                 const struct duda_crash_slot *slot);
/* Adds a subscriber of this worker. Returns false if it cannot be counted. */
bool duda_subscriber_counts_add(struct duda_subscriber_counts *c, mk_str topic);
/* Removes a subscriber that duda_subscriber_counts_add() has counted. */
void duda_subscriber_counts_remove(struct duda_subscriber_counts *c, mk_str topic);
/* Returns the number of subscribers in all live workers. */
uint64_t duda_subscriber_counts_sum(const struct duda_subscriber_counts *c, mk_str topic);

#endif
