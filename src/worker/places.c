/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/places.h"

#include "os/shared_memory.h"
#include "proto/conn.h"

/* The layout of the shared memory. */
struct shared {
    struct mk_history history;
    struct mk_place at[];
};

static size_t size_of(size_t n)
{
    return sizeof(struct shared) + n * sizeof(struct mk_place);
}

mk_err mk_places_open(struct mk_places *p, size_t n)
{
    struct shared *s = mk_shared_memory_new(size_of(n));
    if (!s)
        return -ENOMEM;
    p->at = s->at;
    p->n = n;
    p->history = &s->history;
    return 0;
}

void mk_places_close(struct mk_places *p)
{
    if (p->history)
        mk_shared_memory_free(MK_CONTAINER(p->history, struct shared, history), size_of(p->n));
    *p = (struct mk_places){0};
}

static void add(struct mk_counters *sum, const struct mk_counters *n)
{
    sum->accepted += n->accepted;
    sum->dropped += n->dropped;
    sum->requests += n->requests;
    sum->sent += n->sent;
    sum->cold_reads += n->cold_reads;
    for (size_t i = 0; i < MK_LEN(sum->by_class); i++)
        sum->by_class[i] += n->by_class[i];
    for (size_t i = 0; i < MK_LEN(sum->h2_ended); i++)
        sum->h2_ended[i] += n->h2_ended[i];
    for (size_t i = 0; i < MK_LEN(sum->by_ending); i++)
        sum->by_ending[i] += n->by_ending[i];
}

void mk_places_describe(const struct mk_place *place, struct mk_buf *out)
{
    const struct mk_counters *n = &place->counters;
    int len = (int)strnlen(n->line, sizeof n->line);
    if (!n->moves) {
        mk_buf_add(out, mk_str_of(n->line, (size_t)len));
        return;
    }
    mk_buf_addf(out, "last request \"%.*s\", moves", len, n->line);
    for (int i = 15; i >= 0; i--) {
        uint64_t state = n->moves >> 4 * i & 15;
        if (n->moves >> 4 * i && state < MK_CONN_STATES)
            mk_buf_addf(out, " %s", mk_conn_machine.states->names[state]);
    }
}

void mk_places_give(struct mk_places *p, struct mk_place *place, uint64_t now)
{
    add(&p->history->past, &place->counters);
    *place = (struct mk_place){.started = now, .counters.line = MK_PLACES_FRESH};
}
