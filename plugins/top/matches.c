/* SPDX-License-Identifier: Apache-2.0 */
#include "matches.h"

#include <monkey/mem.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

enum { CLOCK_ERROR_MS = 60000 };

/* Requests in flight come first: their serial is 0. */
static int compare_serials(const void *a, const void *b)
{
    const struct top_entry *x = &((const struct top_match *)a)->entry,
                           *y = &((const struct top_match *)b)->entry;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x->end_serial < y->end_serial ? -1 : x->end_serial > y->end_serial;
}

static int compare_times(const void *a, const void *b)
{
    const struct top_match *x = a, *y = b;
    if (x->order_ms != y->order_ms)
        return x->order_ms < y->order_ms ? -1 : 1;
    return compare_serials(a, b);
}

/* Sorts requests by the time when they ended. The worker reads a clock of low resolution, so the order of the requests of
 * one slot is that of their serials, unless the clock was set back. */
void top_matches_sort(struct top_matches *m)
{
    struct top_match *at = m->at;
    size_t n = m->n;
    if (n == 0)
        return;
    qsort(at, n, sizeof *at, compare_serials);
    for (size_t i = 0; i < n; i++) {
        bool follows = i > 0 && at[i - 1].entry.slot == at[i].entry.slot && at[i - 1].entry.end_serial;
        uint64_t ended = top_entry_ended_ms(&at[i].entry), last = follows ? at[i - 1].order_ms : 0;
        at[i].order_ms = last > ended && last - ended < CLOCK_ERROR_MS ? last : ended;
    }
    qsort(at, n, sizeof *at, compare_times);
}

/* Makes space for one more match. */
static bool grow_matches(struct top_matches *m)
{
    size_t cap = m->cap ? 2 * m->cap : 256;
    struct top_match *more = mk_mem_realloc(m->at, cap * sizeof *more);
    m->no_memory = !more;
    if (!more)
        return false;
    m->at = more;
    m->cap = cap;
    return true;
}

bool top_matches_add(struct top_matches *m, const struct top_entry *e)
{
    if (m->max && m->n == 2 * m->max) {
        top_matches_sort(m);
        memmove(m->at, m->at + m->max, m->max * sizeof *m->at);
        m->n = m->max;
    }
    if (m->n == m->cap && !grow_matches(m))
        return false;
    m->at[m->n++].entry = *e;
    return true;
}

void top_matches_free(struct top_matches *m)
{
    mk_mem_free(m->at);
}
