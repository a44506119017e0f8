/* SPDX-License-Identifier: Apache-2.0 */
#include "service/subscriber_counts.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* Other workers, and the next owner of a row, see the stores in their order. */
#define LOAD(p)     atomic_load_explicit(p, memory_order_acquire)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_release)

void duda_subscriber_counts_init(struct duda_subscriber_counts_memory *memory)
{
    if (!atomic_load(&memory->is_ready))
        mk_random(&memory->key, sizeof memory->key);
    atomic_store(&memory->is_ready, 1);
}

static void clear_row(struct duda_subscriber_row *row)
{
    for (size_t i = 0; i < DUDA_SUBSCRIBER_TOPICS; i++) {
        STORE(&row->topics[i].n, 0);
        STORE(&row->topics[i].hash, 0);
    }
}

static void extend_rows(struct duda_subscriber_counts_memory *memory, uint32_t n)
{
    uint32_t before = LOAD(&memory->n_rows);
    while (before < n && !atomic_compare_exchange_weak(&memory->n_rows, &before, n))
        ;
}

/* A row whose process is not that of its crash slot belongs to an earlier worker. */
void duda_subscriber_counts_open(struct duda_subscriber_counts *c,
                                 struct duda_subscriber_counts_memory *memory,
                                 const struct duda_crash_table *crash_table,
                                 const struct duda_crash_slot *slot)
{
    *c = (struct duda_subscriber_counts){.memory = memory, .crash_table = crash_table};
    if (!slot)
        return;
    size_t row = (size_t)(slot - &crash_table->crash_slots[0][0]);
    extend_rows(memory, (uint32_t)row + 1);
    c->own = &memory->rows[row];
    c->own_pid = &memory->pids[row];
    if (LOAD(c->own_pid)) /* an unused row takes no memory */
        clear_row(c->own);
    STORE(c->own_pid, 0); /* last: if this worker dies before, the next one clears the row */
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

bool duda_subscriber_counts_add(struct duda_subscriber_counts *c, mk_str topic)
{
    uint64_t hash = hash_topic(c, topic);
    size_t at = c->own ? find_entry(c->own, hash) : DUDA_SUBSCRIBER_TOPICS;
    if (at == DUDA_SUBSCRIBER_TOPICS)
        return false;
    uint64_t n = LOAD(&c->own->topics[at].n);
    STORE(c->own_pid, (int64_t)getpid()); /* first: the next owner must clear whatever follows */
    STORE(&c->own->topics[at].hash, hash);
    STORE(&c->own->topics[at].n, n + 1);
    c->n_topics += n == 0;
    return true;
}

/* Releases the entry, and unused ones before it, if the chain ends there. So only entries that are followed by
 * used ones remain, or a full row of unused ones. */
static void release_entries(struct duda_subscriber_counts *c, size_t at)
{
    struct duda_subscriber_row *row = c->own;
    if (!LOAD(&row->topics[(at + 1) % DUDA_SUBSCRIBER_TOPICS].hash))
        for (; LOAD(&row->topics[at].hash) && !LOAD(&row->topics[at].n);
             at = (at + DUDA_SUBSCRIBER_TOPICS - 1) % DUDA_SUBSCRIBER_TOPICS)
            STORE(&row->topics[at].hash, 0);
    else if (!c->n_topics)
        clear_row(row);
}

void duda_subscriber_counts_remove(struct duda_subscriber_counts *c, mk_str topic)
{
    size_t at = find_entry(c->own, hash_topic(c, topic));
    uint64_t n = LOAD(&c->own->topics[at].n) - 1;
    STORE(&c->own->topics[at].n, n);
    if (n)
        return;
    c->n_topics--;
    release_entries(c, at);
}

static bool is_live(const struct duda_subscriber_counts *c, size_t row)
{
    const struct duda_crash_slot *slots = &c->crash_table->crash_slots[0][0];
    int64_t pid = LOAD(&c->memory->pids[row]);
    return pid && pid == LOAD(&slots[row].pid) &&
           (&c->memory->rows[row] == c->own || kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

static uint64_t count_in_row(const struct duda_subscriber_row *row, uint64_t hash)
{
    size_t at = find_entry(row, hash);
    if (at == DUDA_SUBSCRIBER_TOPICS)
        return 0;
    uint64_t n = LOAD(&row->topics[at].n);
    return LOAD(&row->topics[at].hash) == hash ? n : 0; /* the worker may have reused the entry meanwhile */
}

uint64_t duda_subscriber_counts_sum(const struct duda_subscriber_counts *c, mk_str topic)
{
    uint64_t hash = hash_topic(c, topic), sum = 0;
    for (size_t i = 0, n_rows = LOAD(&c->memory->n_rows); i < n_rows; i++) {
        uint64_t n = LOAD(&c->memory->pids[i]) ? count_in_row(&c->memory->rows[i], hash) : 0;
        if (n && is_live(c, i)) /* last: it takes a system call for each other worker */
            sum += n;
    }
    return sum;
}
