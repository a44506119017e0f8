/* SPDX-License-Identifier: Apache-2.0 */
#include "service/subscriber_counts.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define LOAD(p)     atomic_load_explicit(p, memory_order_relaxed)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

void duda_subscriber_counts_init(struct duda_subscriber_counts_memory *memory)
{
    if (!atomic_load(&memory->is_ready))
        mk_random(&memory->key, sizeof memory->key);
    atomic_store(&memory->is_ready, 1);
}

/* A row whose process is not that of its crash slot belongs to an earlier worker. */
void duda_subscriber_counts_open(struct duda_subscriber_counts *c,
                                 struct duda_subscriber_counts_memory *memory,
                                 const struct duda_crash_table *crash_table,
                                 const struct duda_crash_slot *slot)
{
    *c = (struct duda_subscriber_counts){memory, crash_table, NULL, NULL};
    if (!slot)
        return;
    size_t row = (size_t)(slot - &crash_table->crash_slots[0][0]);
    c->own = &memory->rows[row];
    c->own_pid = &memory->pids[row];
    if (LOAD(c->own_pid)) { /* an unused row takes no memory */
        STORE(c->own_pid, 0);
        for (size_t i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++) {
            STORE(&c->own->topics[i].n, 0);
            STORE(&c->own->topics[i].hash, 0);
        }
    }
}

static uint64_t hash_topic(const struct duda_subscriber_counts *c, mk_str topic)
{
    uint64_t hash = mk_hash(&c->memory->key, topic);
    return hash ? hash : 1;
}

/* Returns the index of the topic's entry; otherwise, of the entry for a new topic; or
 * DUDA_SUBSCRIBER_TOPICS: the row is full. */
static size_t find_entry(const struct duda_subscriber_row *row, uint64_t hash)
{
    size_t unused = DUDA_SUBSCRIBER_TOPICS;
    for (size_t i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++) {
        size_t at = (hash + i) % DUDA_SUBSCRIBER_TOPICS;
        uint64_t found = LOAD(&row->topics[at].hash);
        if (found == hash)
            return at;
        if (unused == DUDA_SUBSCRIBER_TOPICS && !LOAD(&row->topics[at].n))
            unused = at;
        if (!found)
            break;
    }
    return unused;
}

bool duda_subscriber_counts_add(const struct duda_subscriber_counts *c, mk_str topic)
{
    uint64_t hash = hash_topic(c, topic);
    size_t at = c->own ? find_entry(c->own, hash) : DUDA_SUBSCRIBER_TOPICS;
    if (at == DUDA_SUBSCRIBER_TOPICS)
        return false;
    STORE(&c->own->topics[at].hash, hash);
    STORE(&c->own->topics[at].n, LOAD(&c->own->topics[at].n) + 1);
    STORE(c->own_pid, (int64_t)getpid());
    return true;
}

void duda_subscriber_counts_remove(const struct duda_subscriber_counts *c, mk_str topic)
{
    size_t at = find_entry(c->own, hash_topic(c, topic));
    STORE(&c->own->topics[at].n, LOAD(&c->own->topics[at].n) - 1);
}

static bool is_live(const struct duda_subscriber_counts *c, size_t row)
{
    const struct duda_crash_slot *slots = &c->crash_table->crash_slots[0][0];
    int64_t pid = LOAD(&c->memory->pids[row]);
    return pid && pid == LOAD(&slots[row].pid) && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

uint64_t duda_subscriber_counts_sum(const struct duda_subscriber_counts *c, mk_str topic)
{
    uint64_t hash = hash_topic(c, topic), sum = 0;
    for (size_t i = 0; i < DUDA_SUBSCRIBER_ROWS; i++) {
        const struct duda_subscriber_row *row = &c->memory->rows[i];
        if (!is_live(c, i)) /* most rows */
            continue;
        size_t at = find_entry(row, hash);
        if (at < DUDA_SUBSCRIBER_TOPICS && LOAD(&row->topics[at].hash) == hash)
            sum += LOAD(&row->topics[at].n);
    }
    return sum;
}
