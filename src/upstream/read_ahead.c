/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/read_ahead.h"

#include <monkey/spool.h>

#include "upstream/conn.h"
#include "upstream/request_receive.h"
#include "upstream/request_state.h"

/* A reader is slow if, during CHECK_MS, the server always had more data, but the reader took less than
 * FAST_BYTES (10 MB/s). */
enum { CHECK_MS = 200, FAST_BYTES = 2 * 1024 * 1024, ITERATION_BYTES_MAX = 256 * 1024 };

/* ---- Into the queue ---- */

static void fill_queue(struct mk_upstream_request *c)
{
    struct mk_read_ahead *a = &c->ahead;
    size_t left = ITERATION_BYTES_MAX;
    while (a->queue && c->state.current == MK_UPSTREAM_REQUEST_CONTENT) {
        char *buf;
        size_t cap;
        if (left == 0) {
            mk_upstream_request_timer_run_later(c);
            return;
        }
        if (mk_spool_queue_reserve(a->queue, &buf, &cap))
            return; /* on_queue_room(), or the next read, continues */
        ssize_t n = mk_upstream_request_receive_body(c, buf, cap < left ? cap : left);
        if (n <= 0)
            return;
        mk_spool_queue_add(a->queue, (size_t)n);
        left -= (size_t)n;
    }
}

static void on_queue_room(void *ctx)
{
    struct mk_upstream_request *c = ctx;
    fill_queue(c);
    if (c->ahead.is_awaited)
        mk_upstream_request_notify(c);
}

bool mk_read_ahead_fill_queue(struct mk_upstream_request *c)
{
    fill_queue(c);
    return c->ahead.is_awaited;
}

/* ---- Slow-reader detection ---- */

static bool has_more_from_server(const struct mk_upstream_request *c)
{
    return c->data.len || c->in.len || mk_upstream_conn_is_readable(c->conn);
}

void mk_read_ahead_check_reader(struct mk_upstream_request *c)
{
    struct mk_read_ahead *a = &c->ahead;
    if (c->state.current != MK_UPSTREAM_REQUEST_CONTENT || a->queue)
        return;
    bool is_slow = has_more_from_server(c) && !a->was_dry && a->taken < FAST_BYTES;
    a->taken = 0;
    a->was_dry = false;
    if (is_slow)
        a->queue = mk_spool_queue_new(a->request, on_queue_room, c);
    if (a->queue)
        fill_queue(c);
    else
        mk_upstream_request_timer_set_check(c, CHECK_MS);
}

/* ---- Reading from the queue ---- */

/* Called when the reader has caught up, or has received everything. */
static void free_queue(struct mk_upstream_request *c)
{
    struct mk_read_ahead *a = &c->ahead;
    mk_spool_queue_free(a->queue);
    a->queue = NULL;
    a->taken = 0;
    a->was_dry = true;
    if (c->state.current == MK_UPSTREAM_REQUEST_CONTENT)
        mk_upstream_request_timer_set_check(c, CHECK_MS);
}

/* Reads from the queue. 0: it is empty. */
static ssize_t read_from_queue(struct mk_upstream_request *c, char *buf, size_t cap)
{
    struct mk_read_ahead *a = &c->ahead;
    if (!a->queue)
        return 0;
    ssize_t n = mk_spool_queue_read(a->queue, buf, cap);
    if (n == 0)
        free_queue(c);
    else if (n > 0 && c->state.current == MK_UPSTREAM_REQUEST_CONTENT)
        mk_upstream_request_timer_run_later(c); /* the queue may have space again */
    else if (n < 0 && n != -EAGAIN)
        a->error = (int)n;
    return n;
}

static ssize_t read_from_server(struct mk_upstream_request *c, char *buf, size_t cap)
{
    if (c->state.current == MK_UPSTREAM_REQUEST_CONTENT)
        return mk_upstream_request_receive_body(c, buf, cap);
    return c->state.current == MK_UPSTREAM_REQUEST_DONE ? 0 : c->error;
}

ssize_t mk_read_ahead_read(struct mk_upstream_request *c, char *buf, size_t cap)
{
    struct mk_read_ahead *a = &c->ahead;
    if (a->error)
        return a->error;
    ssize_t n = read_from_queue(c, buf, cap);
    if (n == 0)
        n = read_from_server(c, buf, cap);
    a->is_awaited = n == -EAGAIN;
    a->was_dry |= a->is_awaited;
    if (n > 0)
        a->taken += (uint64_t)n;
    return n;
}

/* ---- Beginning and end ---- */

void mk_read_ahead_start(struct mk_upstream_request *c, struct mk_request *request)
{
    mk_upstream_request_timer_set_check(c, CHECK_MS);
    c->ahead.request = request;
}
