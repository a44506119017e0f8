/* SPDX-License-Identifier: Apache-2.0 */
#include "web/limits.h"

#include <stdio.h>

#include "http/path_variants.h"
#include "web/destination.h"
#include "web/variants.h"

/* 0: no limit. */
static uint32_t shorter(uint32_t a, uint32_t b)
{
    return a == 0 || (b && b < a) ? b : a;
}

static bool is_faster(const struct mk_request_limits *a, const struct mk_request_limits *b)
{
    return a->rate_ms &&
           (!b->rate_ms || a->rate_bytes * 1000 / a->rate_ms > b->rate_bytes * 1000 / b->rate_ms);
}

struct mk_request_limits mk_limits_stricter(const struct mk_request_limits *own,
                                            const struct mk_request_limits *other)
{
    const struct mk_request_limits *rate = is_faster(other, own) ? other : own;
    return (struct mk_request_limits){
        .content_max = mk_min(own->content_max, other->content_max),
        .rate_bytes = rate->rate_bytes,
        .rate_ms = rate->rate_ms,
        .handler_ms = shorter(own->handler_ms, other->handler_ms),
        .tunnel_ms = shorter(own->tunnel_ms, other->tunnel_ms),
        .log = own->log,
        .log_format = own->log_format,
    };
}

/* ---- Of a path ---- */

bool mk_limits_may_report(struct mk_exchange *x)
{
    struct mk_web *web = x->request.web;
    bool may = web->gave_up != x->request.now;
    web->gave_up = x->request.now;
    return may;
}

MK_COLD static const struct mk_request_limits *be_strict(struct mk_exchange *x, const struct mk_location *l)
{
    if (mk_limits_may_report(x))
        mk_log_error(
            x->request.web->log,
            "the search for the paths of the [LOCATION] at %.*s was given up: it took too many steps, "
            "or too much memory; the stricter of its limits and the host's hold",
            MK_STR_ARG(l->written_at));
    return &l->strict;
}

static const struct mk_request_limits *find_for(struct mk_exchange *x, mk_str path)
{
    const struct mk_vhost *host = x->request.site;
    bool gave_up;
    const struct mk_location *l = mk_vhost_location(host, path, &gave_up);
    const struct mk_request_limits *found = !l                     ? host->limits
                                            : MK_UNLIKELY(gave_up) ? be_strict(x, l)
                                                                   : &l->limits;
    return found ? found : x->request.web->limits;
}

/* A variant may belong to any location. */
static void meet_all(const struct mk_vhost *host, struct mk_request_limits *all)
{
    for (size_t i = 0; i < host->n_locations; i++)
        *all = mk_limits_stricter(all, &host->locations[i].limits);
}

static void meet(struct mk_exchange *x, mk_str path, struct mk_request_limits *all)
{
    *all = mk_limits_stricter(all, find_for(x, path));
}

/* 0, or a status: the variants are unknown. */
static unsigned meet_variants(struct mk_exchange *x, const struct mk_asked *a, struct mk_request_limits *all)
{
    const struct mk_variants *v;
    unsigned status = mk_variants_of(&x->request, a, &v);
    for (size_t i = 0; i < v->n; i++)
        meet(x, v->list[i], all);
    return status;
}

/* The same, of where a COPY or MOVE leads. */
static unsigned meet_destination(struct mk_exchange *x, struct mk_request_limits *all)
{
    struct mk_asked *to = NULL;
    bool has = mk_headers_has(&x->request.fields, MK_HEADER_DESTINATION);
    unsigned status = has ? mk_destination_of(&x->request, &to) : 0;
    if (status || !to)
        return status;
    meet(x, to->path, all);
    return meet_variants(x, to, all);
}

/* Asked for more than once, but the path stays. */
MK_COLD static const struct mk_request_limits *find_strictest(struct mk_exchange *x)
{
    const struct mk_request_limits *own = find_for(x, x->request.received.path);
    struct mk_request_limits *all = mk_arena_alloc(&x->arena, sizeof *all);
    if (!all)
        return own; /* such a request fails where its handler needs memory */
    *all = *own;
    unsigned status = meet_variants(x, &x->request.received, all);
    if (meet_destination(x, all) || status)
        meet_all(x->request.site, all);
    return x->of_variants = all;
}

const struct mk_request_limits *mk_limits_find(struct mk_exchange *x)
{
    const struct mk_asked *a = &x->request.received;
    if (MK_UNLIKELY(x->of_variants != NULL))
        return x->of_variants;
    bool may_vary =
        mk_path_may_vary(a->path, a->path_flags & MK_PATH_ENCODED_SLASH, &x->request.site->scripts) ||
        mk_headers_has(&x->request.fields, MK_HEADER_DESTINATION);
    return MK_UNLIKELY(may_vary) ? find_strictest(x) : find_for(x, a->path);
}

/* ---- Reports ---- */

/* As a configuration writes it. */
static void write_size(char room[32], uint64_t n)
{
    const char *unit = n % (1 << 20) == 0 ? "M" : n % (1 << 10) == 0 ? "K" : " bytes";
    uint64_t by = n % (1 << 20) == 0 ? 1 << 20 : n % (1 << 10) == 0 ? 1 << 10 : 1;
    snprintf(room, 32, "%llu%s", (unsigned long long)(n / by), n ? unit : "");
}

/* Clients must not fill the log: a warning a second, the others are for those who debug. */
void mk_limits_report_length(struct mk_exchange *x, uint64_t max, bool whole)
{
    struct mk_web *web = x->request.web;
    enum mk_log_level level = web->told_length == x->request.now ? MK_LOG_DEBUG : MK_LOG_WARN;
    char size[32];
    if (x->told_length)
        return;
    x->told_length = true;
    web->told_length = x->request.now;
    write_size(size, max);
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
