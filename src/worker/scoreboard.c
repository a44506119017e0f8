/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/scoreboard.h"

#include "connection/conn.h"
#include "os/shared_memory.h"

/* Layout of the shared memory. */
struct scoreboard_memory {
    struct mk_reload_stats history;
    struct mk_scoreboard_slot at[];
};

static size_t shared_size(size_t n)
{
    return sizeof(struct scoreboard_memory) + n * sizeof(struct mk_scoreboard_slot);
}

mk_err mk_scoreboard_open(struct mk_scoreboard *p, size_t n)
{
    struct scoreboard_memory *s = mk_shared_memory_new(shared_size(n));
    if (!s)
        return -ENOMEM;
    p->at = s->at;
    p->n = n;
    p->history = &s->history;
    return 0;
}

void mk_scoreboard_close(struct mk_scoreboard *p)
{
    if (p->history)
        mk_shared_memory_free(MK_CONTAINER(p->history, struct scoreboard_memory, history), shared_size(p->n));
    *p = (struct mk_scoreboard){0};
}

static void add_counters(struct mk_counters *sum, const struct mk_counters *n)
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

void mk_scoreboard_describe_slot(const struct mk_scoreboard_slot *place, struct mk_buf *out)
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

void mk_scoreboard_reassign_slot(struct mk_scoreboard *p, struct mk_scoreboard_slot *place, uint64_t now)
{
    add_counters(&p->history->past, &place->counters);
    *place = (struct mk_scoreboard_slot){.started = now, .counters.line = MK_SCOREBOARD_FRESH};
}
