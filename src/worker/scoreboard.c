/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/scoreboard.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/platform.h"
#include "connection/conn.h"

/* Layout of the shared memory. */
struct scoreboard_memory {
    struct mk_reload_stats reload_stats;
    struct mk_scoreboard_slot at[];
};

static size_t scoreboard_size(size_t n)
{
    return sizeof(struct scoreboard_memory) + n * sizeof(struct mk_scoreboard_slot);
}

/* Allocates zeroed memory that is shared with processes started later, or heap memory in a library, which
 * starts no processes. */
static void *alloc_shared(size_t size)
{
    if (!mk_platform.owns_process)
        return mk_mem_zalloc(1, size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void free_shared(void *p, size_t size)
{
    if (mk_platform.owns_process)
        munmap(p, size);
    else
        mk_mem_free(p);
}

mk_err mk_scoreboard_init(struct mk_scoreboard *p, size_t n)
{
    struct scoreboard_memory *s = alloc_shared(scoreboard_size(n));
    if (!s)
        return -ENOMEM;
    p->at = s->at;
    p->n = n;
    p->reload_stats = &s->reload_stats;
    return 0;
}

void mk_scoreboard_fini(struct mk_scoreboard *p)
{
    if (p->reload_stats)
        free_shared(MK_CONTAINER(p->reload_stats, struct scoreboard_memory, reload_stats),
                    scoreboard_size(p->n));
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
    for (size_t i = 0; i < MK_LEN(sum->by_outcome); i++)
        sum->by_outcome[i] += n->by_outcome[i];
}

void mk_scoreboard_describe_slot(const struct mk_scoreboard_slot *slot, struct mk_buf *out)
{
    const struct mk_counters *n = &slot->counters;
    int len = (int)strnlen(n->line, sizeof n->line);
    if (!n->moves) {
        mk_buf_add(out, mk_str_of(n->line, (size_t)len));
        return;
    }
    mk_buf_addf(out, "last request \"%.*s\", connection states", len, n->line);
    for (int i = 15; i >= 0; i--) {
        uint64_t state = n->moves >> 4 * i & 15;
        if (n->moves >> 4 * i && state < MK_CONN_STATES)
            mk_buf_addf(out, " %s", mk_conn_machine.states->names[state]);
    }
}

void mk_scoreboard_reassign_slot(struct mk_scoreboard *p, struct mk_scoreboard_slot *slot, uint64_t now)
{
    add_counters(&p->reload_stats->past, &slot->counters);
    *slot = (struct mk_scoreboard_slot){.started = now, .counters.line = MK_SCOREBOARD_FRESH};
}

/* ---- Reload statistics ---- */

void mk_scoreboard_reload_begin(struct mk_reload_stats *h)
{
    atomic_store(&h->reloading, true);
}

void mk_scoreboard_reload_succeeded(struct mk_reload_stats *h)
{
    atomic_fetch_add(&h->reloads, 1);
    atomic_store(&h->reloaded_at, mk_clock_unix());
    atomic_store(&h->last_failed, false);
    atomic_store(&h->reloading, false);
}

static void copy_text(char *to, size_t size, mk_str text)
{
    size_t len = mk_min(text.len, size - 1);
    if (len)
        memcpy(to, text.p, len);
    to[len] = '\0';
}

void mk_scoreboard_reload_failed(struct mk_reload_stats *h, mk_str error)
{
    copy_text(h->why, sizeof h->why, error);
    atomic_fetch_add(&h->failed_reloads, 1);
    atomic_store(&h->failed_at, mk_clock_unix());
    atomic_store(&h->last_failed, true);
    atomic_store(&h->reloading, false);
}

void mk_scoreboard_publish_result(struct mk_reload_stats *h, uint64_t id, bool ok, mk_str text)
{
    struct mk_reload_result *r = &h->results[h->next_result % MK_RELOAD_RESULTS];
    h->next_result++;
    atomic_store(&r->id, 0);
    r->ok = ok;
    copy_text(r->text, sizeof r->text, text);
    atomic_store(&r->id, id);
}

bool mk_scoreboard_find_result(const struct mk_reload_stats *h, uint64_t id, bool *ok, struct mk_buf *text)
{
    char copy[MK_RELOAD_RESULT_TEXT];
    for (size_t i = 0; id && i < MK_RELOAD_RESULTS; i++) {
        const struct mk_reload_result *r = &h->results[i];
        if (atomic_load(&r->id) != id)
            continue;
        *ok = r->ok;
        memcpy(copy, r->text, sizeof copy);
        if (atomic_load(&r->id) != id) /* the master has replaced it meanwhile */
            return false;
        if (text)
            mk_buf_add(text, mk_str_of(copy, strnlen(copy, sizeof copy)));
        return true;
    }
    return false;
}

bool mk_scoreboard_add_order(struct mk_reload_orders *o, uint64_t id)
{
    if (id && o->n == MK_RELOAD_ORDERS_MAX)
        return false;
    if (id)
        o->ids[o->n++] = id;
    return true;
}

void mk_scoreboard_finish_orders(struct mk_reload_orders *o, struct mk_reload_stats *stats, bool ok,
                                 mk_str text)
{
    for (unsigned i = 0; i < o->n; i++)
        mk_scoreboard_publish_result(stats, o->ids[i], ok, text);
    o->n = 0;
}
