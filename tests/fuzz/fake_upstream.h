/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose peer sends the fuzzer's bytes and accepts all data. Replaces the `upstream` plugin and
 * the worker. */
#ifndef MK_FUZZ_FAKE_UPSTREAM_H
#define MK_FUZZ_FAKE_UPSTREAM_H

#include <duda/memory.h>
#include <errno.h>
#include <monkey/upstream.h>
#include <monkey/worker.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

static mk_str peer_input; /* bytes left to send; then the connection ends */
static size_t peer_piece; /* size of a read */
static uint64_t peer_clock;
static unsigned peer_open; /* connections that were opened and not released */

struct mk_upstream_conn *mk_upstream_conn_acquire(struct mk_worker *w, struct mk_upstream *u,
                                                  const struct mk_upstream_conn_options *options,
                                                  void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    static char link;
    (void)w, (void)u, (void)on_ready, (void)ctx;
    MK_ASSERT(!options->address.p || options->address.len);
    peer_open++;
    return (struct mk_upstream_conn *)(void *)&link;
}

int mk_upstream_conn_state(const struct mk_upstream_conn *l)
{
    (void)l;
    return 0;
}

ssize_t mk_upstream_conn_read(struct mk_upstream_conn *l, char *buffer, size_t cap)
{
    MK_ASSERT(l && peer_open == 1);
    size_t n = peer_input.len < cap ? peer_input.len : cap;
    n = n < peer_piece ? n : peer_piece;
    if (n)
        memcpy(buffer, peer_input.p, n);
    peer_input = mk_str_skip(peer_input, n);
    return (ssize_t)n;
}

ssize_t mk_upstream_conn_write(struct mk_upstream_conn *l, mk_str bytes, bool more)
{
    (void)more;
    MK_ASSERT(l && peer_open == 1);
    return (ssize_t)bytes.len;
}

void mk_upstream_conn_release(struct mk_upstream_conn *l, enum mk_upstream_conn_disposition how)
{
    (void)how;
    if (l)
        peer_open--;
}

bool mk_upstream_is_tls(const struct mk_upstream *u)
{
    (void)u;
    return true; /* callers then read everything in one event */
}

/* Advances by a second with each call. */
uint64_t mk_worker_now_ms(const struct mk_worker *w)
{
    (void)w;
    return peer_clock += 1000;
}

void mk_worker_log(struct mk_worker *w, enum mk_log_level level, const char *fmt, ...)
{
    char text[2000];
    va_list args;
    (void)w, (void)level;
    va_start(args, fmt);
    MK_ASSERT(vsnprintf(text, sizeof text, fmt, args) >= 0);
    va_end(args);
}

void mk_timer_set(struct mk_timer *t, struct mk_worker *w, uint32_t ms)
{
    (void)t, (void)w, (void)ms;
}

void mk_timer_stop(struct mk_timer *t)
{
    (void)t;
}

struct mk_deferred *mk_deferred_new(struct mk_worker *w, void (*on_end)(void *ctx), void *ctx)
{
    static char turn;
    (void)w, (void)on_end, (void)ctx;
    return (struct mk_deferred *)(void *)&turn;
}

void mk_deferred_post(struct mk_deferred *t)
{
    (void)t;
}

void mk_deferred_free(struct mk_deferred *t)
{
    (void)t;
}

/* ---- A handler ---- */

void *duda_alloc(struct duda_ctx *d, size_t size)
{
    (void)d;
    return pool_alloc(NULL, size);
}

mk_str duda_strdup(struct duda_ctx *d, mk_str text)
{
    char *buffer = duda_alloc(d, text.len + 1);
    MK_ASSERT(buffer);
    if (text.len)
        memcpy(buffer, text.p, text.len);
    buffer[text.len] = 0;
    return mk_str_of(buffer, text.len);
}

#endif
