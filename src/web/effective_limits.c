/* SPDX-License-Identifier: Apache-2.0 */
#include "web/effective_limits.h"

#include <stdio.h>

#include "http/path_variants.h"
#include "web/destination_header.h"
#include "web/request_variants.h"

/* Returns the shorter timeout, where 0 means no limit. */
static uint32_t shorter_timeout(uint32_t a, uint32_t b)
{
    return a == 0 || (b && b < a) ? b : a;
}

static bool is_higher_min_rate(const struct mk_request_limits *a, const struct mk_request_limits *b)
{
    return a->rate_ms &&
           (!b->rate_ms || a->rate_bytes * 1000 / a->rate_ms > b->rate_bytes * 1000 / b->rate_ms);
}

struct mk_request_limits mk_effective_limits_stricter(const struct mk_request_limits *own,
                                                      const struct mk_request_limits *other)
{
    const struct mk_request_limits *rate = is_higher_min_rate(other, own) ? other : own;
    return (struct mk_request_limits){
        .content_max = mk_min(own->content_max, other->content_max),
        .rate_bytes = rate->rate_bytes,
        .rate_ms = rate->rate_ms,
        .handler_ms = shorter_timeout(own->handler_ms, other->handler_ms),
        .tunnel_ms = shorter_timeout(own->tunnel_ms, other->tunnel_ms),
        .log = own->log,
        .log_format = own->log_format,
    };
}

/* ---- Limits of a path ---- */

bool mk_effective_limits_may_log(struct mk_exchange *x)
{
    struct mk_web_ctx *web = x->request.web;
    bool may = web->gave_up != x->request.now;
    web->gave_up = x->request.now;
    return may;
}

MK_COLD static const struct mk_request_limits *log_and_return_strict_limits(struct mk_exchange *x,
                                                                            const struct mk_location *l)
{
    if (mk_effective_limits_may_log(x))
        mk_log_error(x->request.web->log,
                     "matching the paths of the [LOCATION] at %.*s took too many steps or too much memory; "
                     "the stricter value of each limit of the location and the host applies",
                     MK_STR_ARG(l->written_at));
    return &l->strict;
}

static const struct mk_request_limits *limits_for_path(struct mk_exchange *x, mk_str path)
{
    const struct mk_vhost *host = x->request.site;
    bool gave_up;
    const struct mk_location *l = mk_vhost_location(host, path, &gave_up);
    const struct mk_request_limits *found = !l                     ? host->limits
                                            : MK_UNLIKELY(gave_up) ? log_and_return_strict_limits(x, l)
                                                                   : &l->limits;
    return found ? found : x->request.web->limits;
}

/* Merges the limits of all locations. Needed if the variants of a path are unknown, because they may match
 * any location. */
static void merge_all_locations(const struct mk_vhost *host, struct mk_request_limits *all)
{
    for (size_t i = 0; i < host->n_locations; i++)
        *all = mk_effective_limits_stricter(all, &host->locations[i].limits);
}

static void merge_limits_for_path(struct mk_exchange *x, mk_str path, struct mk_request_limits *all)
{
    *all = mk_effective_limits_stricter(all, limits_for_path(x, path));
}

/* Merges the limits of the path's variants. Returns 0, or a status if the variants are unknown. */
static unsigned merge_limits_for_variants(struct mk_exchange *x, const struct mk_request_target *a,
                                          struct mk_request_limits *all)
{
    const struct mk_request_path_variants *v;
    unsigned status = mk_request_variants_of_target(&x->request, a, &v);
    for (size_t i = 0; i < v->n; i++)
        merge_limits_for_path(x, v->list[i], all);
    return status;
}

/* Merges the limits of the Destination of COPY and MOVE, and of its variants. */
static unsigned merge_limits_for_destination(struct mk_exchange *x, struct mk_request_limits *all)
{
    struct mk_request_target *to = NULL;
    bool has = mk_headers_has(&x->request.fields, MK_HEADER_DESTINATION);
    unsigned status = has ? mk_destination_header_target(&x->request, &to) : 0;
    if (status || !to)
        return status;
    merge_limits_for_path(x, to->path, all);
    return merge_limits_for_variants(x, to, all);
}

/* Runs once per request: the result is stored in x->variants_limits. */
MK_COLD static const struct mk_request_limits *find_strictest_limits(struct mk_exchange *x)
{
    const struct mk_request_limits *own = limits_for_path(x, x->request.received.path);
    struct mk_request_limits *all = mk_arena_alloc(&x->arena, sizeof *all);
    if (!all)
        return own; /* out of memory: the request will fail when its handler allocates memory */
    *all = *own;
    unsigned status = merge_limits_for_variants(x, &x->request.received, all);
    if (merge_limits_for_destination(x, all) || status)
        merge_all_locations(x->request.site, all);
    return x->variants_limits = all;
}

const struct mk_request_limits *mk_effective_limits_find(struct mk_exchange *x)
{
    const struct mk_request_target *a = &x->request.received;
    if (MK_UNLIKELY(x->variants_limits != NULL))
        return x->variants_limits;
    bool may_vary =
        mk_path_may_vary(a->path, a->path_flags & MK_PATH_ENCODED_SLASH, &x->request.site->scripts) ||
        mk_headers_has(&x->request.fields, MK_HEADER_DESTINATION);
    return MK_UNLIKELY(may_vary) ? find_strictest_limits(x) : limits_for_path(x, a->path);
}

/* ---- Reports ---- */

/* Formats a size in configuration syntax. */
static void format_size(char buf[32], uint64_t n)
{
    const char *unit = n % (1 << 20) == 0 ? "M" : n % (1 << 10) == 0 ? "K" : " bytes";
    uint64_t by = n % (1 << 20) == 0 ? 1 << 20 : n % (1 << 10) == 0 ? 1 << 10 : 1;
    snprintf(buf, 32, "%llu%s", (unsigned long long)(n / by), n ? unit : "");
}

/* Returns the body limit that the handler has set; 0: MaxBodySize applies. */
static uint64_t own_body_max(struct mk_exchange *x)
{
    const struct mk_route *route = x->body_route;
    uint64_t max = route && route->handler->body_max ? route->handler->body_max(&x->request, route->data)
                                                     : MK_BODY_MAX_DEFAULT;
    return max == MK_BODY_MAX_DEFAULT || max == MK_BODY_MAX_PASS ? 0 : max;
}

/* Logs one warning per second, and further messages at debug level: clients must not flood the log. */
void mk_effective_limits_log_too_long(struct mk_exchange *x, uint64_t max, bool whole)
{
    struct mk_web_ctx *web = x->request.web;
    enum mk_log_level level = web->too_long_logged_at == x->request.now ? MK_LOG_DEBUG : MK_LOG_WARN;
    char size[32];
    const char *setting = x->body_route ? x->body_route->handler->body_max_setting : NULL;
    if (x->too_long_logged_at)
        return;
    x->too_long_logged_at = true;
    web->too_long_logged_at = x->request.now;
    uint64_t own = whole ? 0 : own_body_max(x);
    format_size(size, own ? own : max);
    if (whole)
        mk_request_log(&x->request, level, "413: the request is larger than `MaxRequestSize`");
    else if (own)
        mk_request_log(&x->request, level,
                       "413: the body is larger than the %s that this route of `%s` allows%s%s", size,
                       x->body_route->handler->name, setting ? "; raise " : "", setting ? setting : "");
    else
        mk_request_log(
            &x->request, level,
            "413: the body is larger than `MaxBodySize %s`; raise it in the [LOCATION] of the path, in "
            "[HOST] or [SERVER], or set `.body_max` of the service's route",
            size);
}
