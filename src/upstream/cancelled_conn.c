/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/cancelled_conn.h"

#include <errno.h>

bool mk_cancelled_conn_discard_input(struct mk_upstream_conn *c)
{
    char buf[4096];
    ssize_t n;
    while ((n = mk_upstream_conn_read(c, buf, sizeof buf)) > 0) {
        if ((size_t)n > c->discards)
            return false;
        c->discards -= (size_t)n;
    }
    return n == -EAGAIN;
}

/* The bytes that have already arrived are discarded before the limit becomes 0 for an endless response: the
 * server sent these bytes before the request was cancelled, so they must not close the connection. */
bool mk_cancelled_conn_start(struct mk_upstream_conn *c)
{
    c->discards = MK_CANCELLED_CONN_BYTES;
    if (c->state.current != MK_UPSTREAM_CONN_OPEN || !mk_cancelled_conn_discard_input(c))
        return false;
    if (c->streams)
        c->discards = 0;
    c->until_ms = mk_worker_now_ms(c->worker) + c->cancelled_ms;
    c->stream.ops->shutdown(&c->stream);
    return true;
}

struct mk_upstream_conn *mk_cancelled_conn_find_expired(const struct mk_backend *o)
{
    uint64_t now = mk_worker_now_ms(o->pool->worker);
    for (struct mk_list *at = o->cancelled.next; at != &o->cancelled; at = at->next) {
        struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (c->until_ms <= now)
            return c;
    }
    return NULL;
}

uint64_t mk_cancelled_conn_next_expiry_ms(const struct mk_backend *o)
{
    uint64_t next = UINT64_MAX;
    for (struct mk_list *at = o->cancelled.next; at != &o->cancelled; at = at->next) {
        const struct mk_upstream_conn *c = MK_LIST_ENTRY(at, struct mk_upstream_conn, backend_link);
        if (c->until_ms < next)
            next = c->until_ms;
    }
    return next;
}
