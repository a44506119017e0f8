/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/abandon.h"

#include <errno.h>

bool mk_abandon_continue(struct mk_upstream_conn *c)
{
    char room[4096];
    ssize_t n;
    while ((n = mk_upstream_conn_read(c, room, sizeof room)) > 0) {
        if ((size_t)n > c->discards)
            return false;
        c->discards -= (size_t)n;
    }
    return n == -EAGAIN;
}

/* Bytes that are there already belong to the time before the request was cancelled. */
bool mk_abandon_begin(struct mk_upstream_conn *c, uint32_t ms, bool streams)
{
    c->discards = MK_ABANDON_BYTES;
    if (c->state.is != MK_UPSTREAM_CONN_OPEN || !mk_abandon_continue(c))
        return false;
    if (streams)
        c->discards = 0;
    c->until_ms = mk_worker_now_ms(c->worker) + (ms ? ms : MK_ABANDON_MS);
    c->stream.ops->shutdown(&c->stream);
    return true;
}

struct mk_upstream_conn *mk_abandon_due(const struct mk_backend *o)
{
    uint64_t now = mk_worker_now_ms(o->pool->worker);
    for (struct mk_list *at = o->abandoned.next; at != &o->abandoned; at = at->next) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (c->until_ms <= now)
            return c;
    }
    return NULL;
}

uint64_t mk_abandon_next_ms(const struct mk_backend *o)
{
    uint64_t next = UINT64_MAX;
    for (struct mk_list *at = o->abandoned.next; at != &o->abandoned; at = at->next) {
        const struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (c->until_ms < next)
            next = c->until_ms;
    }
    return next;
}
