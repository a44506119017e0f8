/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a plugin sets for one request. */
#include <stdio.h>

#include "web/flow.h"

enum { DAY_MS = 24 * 3600 * 1000, RATE_SPAN_MS = 10000 /* where MinRate is off */ };

/* From here on the request has limits of its own, at first those that held before. NULL: no memory. */
static struct mk_request_limits *own_limits(struct mk_request *r)
{
    struct mk_exchange *x = mk_exchange_of(r);
    const struct mk_request_limits *now = mk_flow_limits(x);
    if (!x->limits && (x->limits = mk_arena_alloc(r->arena, sizeof *x->limits)))
        *x->limits = *now;
    return x->limits;
}

static uint32_t at_most_a_day(uint32_t ms)
{
    return ms < DAY_MS ? ms : DAY_MS;
}

int mk_request_limit_wait(struct mk_request *r, uint32_t ms)
{
    struct mk_request_limits *l = own_limits(r);
    if (l)
        l->handler_ms = at_most_a_day(ms);
    return l ? 0 : -ENOMEM;
}

int mk_request_limit_tunnel(struct mk_request *r, uint32_t ms)
{
    struct mk_request_limits *l = own_limits(r);
    if (l)
        l->tunnel_ms = at_most_a_day(ms);
    return l ? 0 : -ENOMEM;
}

int mk_request_limit_rate(struct mk_request *r, uint32_t bytes_per_second)
{
    struct mk_request_limits *l = own_limits(r);
    if (!l)
        return -ENOMEM;
    if (!bytes_per_second || !l->rate_ms)
        l->rate_ms = bytes_per_second ? RATE_SPAN_MS : 0;
    l->rate_bytes = (uint64_t)bytes_per_second * l->rate_ms / 1000;
    return 0;
}

/* As a configuration writes it. */
static void write_size(char room[32], uint64_t n)
{
    const char *unit = n % (1 << 20) == 0 ? "M" : n % (1 << 10) == 0 ? "K" : " bytes";
    uint64_t by = n % (1 << 20) == 0 ? 1 << 20 : n % (1 << 10) == 0 ? 1 << 10 : 1;
    snprintf(room, 32, "%llu%s", (unsigned long long)(n / by), n ? unit : "");
}

/* Clients must not fill the log: a warning a second, the others are for those who debug. */
void mk_flow_tell_length(struct mk_exchange *x, bool whole)
{
    struct mk_web *web = x->request.web;
    enum mk_log_level level = web->told_length == x->request.now ? MK_LOG_DEBUG : MK_LOG_WARN;
    char size[32];
    if (x->told_length)
        return;
    x->told_length = true;
    web->told_length = x->request.now;
    write_size(size, mk_flow_limits(x)->content_max);
    if (whole)
        mk_request_log(&x->request, level, "413: the request is longer than `MaxRequestSize`");
    else if (x->body_own)
        mk_request_log(&x->request, level,
                       "413: the content is longer than this route of `%s` allows: raise its `.body_max`",
                       x->body_route->handler->name);
    else
        mk_request_log(
            &x->request, level,
            "413: the content is longer than `MaxBodySize %s`: raise it for the path in a [LOCATION], "
            "a [HOST] or [SERVER], or in a service by `.body_max` of the route",
            size);
}

int mk_request_limit_body(struct mk_request *r, uint64_t bytes)
{
    struct mk_exchange *x = mk_exchange_of(r);
    struct mk_request_limits *l = own_limits(r);
    if (!l)
        return -ENOMEM;
    l->content_max = bytes;
    if (x->body_open || !r->length || !r->ops || !r->ops->limit_body)
        return 0; /* a handler has not decided yet, or there is no content */
    int e = r->ops->limit_body(r->ops_ctx, bytes);
    if (e)
        mk_flow_tell_length(x, false);
    return e;
}

uint64_t mk_request_body_max(struct mk_request *r)
{
    return mk_flow_limits(mk_exchange_of(r))->content_max;
}
