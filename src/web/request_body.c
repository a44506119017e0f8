/* SPDX-License-Identifier: Apache-2.0 */
/* The request body for handlers and hooks, and the limits that they set for one request. */
#include "web/dispatch.h"
#include "web/effective_limits.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static uint64_t body_length(const struct mk_request *r)
{
    if (mk_response_body_is_tunnel(&mk_exchange_of(r)->response.content))
        return MK_REQUEST_LENGTH_UNKNOWN;
    return mk_request_body_was_dropped(r) ? 0 : r->length;
}

int64_t mk_request_length(const struct mk_request *r)
{
    uint64_t length = body_length(r);
    return length == MK_REQUEST_LENGTH_UNKNOWN ? -1 : (int64_t)length;
}

ssize_t mk_request_read(struct mk_request *r, char *buf, size_t cap)
{
    if (!r->ops || !body_length(r))
        return 0;
    if (MK_UNLIKELY(mk_exchange_handler_sets_body_max(mk_exchange_of(r))) &&
        !mk_dispatch_may_read_body(mk_exchange_of(r)))
        return -EMSGSIZE;
    ssize_t n = cap ? r->ops->read(r->ops_ctx, buf, cap) : -EINVAL;
    mk_exchange_of(r)->body_has_ended |= n == 0;
    if (MK_UNLIKELY(n == -EMSGSIZE))
        mk_effective_limits_log_too_long(mk_exchange_of(r), mk_request_body_max(r), false);
    return n;
}

/* ---- Limits ---- */

/* Gives the request its own copy of the effective limits. NULL: out of memory. */
static struct mk_request_limits *get_own_limits(struct mk_request *r)
{
    struct mk_exchange *x = mk_exchange_of(r);
    const struct mk_request_limits *now = mk_dispatch_limits(x);
    if (!x->limits && (x->limits = mk_arena_alloc(r->arena, sizeof *x->limits)))
        *x->limits = *now;
    return x->limits;
}

/* Converts a timeout for the limits, where 0 means no timeout. */
static uint32_t clamp_to_day(uint32_t ms)
{
    return ms == MK_FOREVER ? 0 : ms < DAY_MS ? ms : DAY_MS;
}

int mk_request_set_handler_timeout(struct mk_request *r, uint32_t ms)
{
    if (!ms)
        return -EINVAL;
    struct mk_request_limits *l = get_own_limits(r);
    if (l)
        l->handler_ms = clamp_to_day(ms);
    return l ? 0 : -ENOMEM;
}

int mk_request_set_tunnel_timeout(struct mk_request *r, uint32_t ms)
{
    if (!ms)
        return -EINVAL;
    struct mk_request_limits *l = get_own_limits(r);
    if (l)
        l->tunnel_ms = clamp_to_day(ms);
    return l ? 0 : -ENOMEM;
}

int mk_request_set_body_timeout(struct mk_request *r, uint32_t ms)
{
    if (!ms)
        return -EINVAL;
    struct mk_request_limits *l = get_own_limits(r);
    if (l) {
        l->rate_ms = clamp_to_day(ms);
        l->rate_bytes = 1;
    }
    return l ? 0 : -ENOMEM;
}

int mk_request_set_body_max(struct mk_request *r, uint64_t bytes)
{
    struct mk_exchange *x = mk_exchange_of(r);
    struct mk_request_limits *l = get_own_limits(r);
    if (!l)
        return -ENOMEM;
    l->content_max = bytes;
    if (mk_exchange_handler_sets_body_max(x) || !r->length || !r->ops || !r->ops->limit_body)
        return 0; /* the handler will set the limit, or there is no body to limit */
    int e = r->ops->limit_body(r->ops_ctx, bytes);
    if (e)
        mk_effective_limits_log_too_long(x, bytes, false);
    return e;
}

uint64_t mk_request_body_max(struct mk_request *r)
{
    return mk_dispatch_limits(mk_exchange_of(r))->content_max;
}
