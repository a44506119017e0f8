/* SPDX-License-Identifier: Apache-2.0 */
/* Finds other paths that programs may derive from the path of a request, and checks whether the routes treat
 * them differently. */
#include "web/request_variants.h"

#include "http/path_variants.h"
#include "web/condition.h"
#include "web/destination_header.h"
#include "web/exchange.h"
#include "web/redirect.h"
#include "web/status_handler.h"

static const struct mk_request_path_variants none;

static bool path_may_vary(const struct mk_request *r, const struct mk_request_target *a)
{
    return mk_path_may_vary(a->path, a->path_flags & MK_PATH_ENCODED_SLASH,
                            r->site ? &r->site->scripts : NULL);
}

/* Was this the path of the request before a rewrite? Then it was checked already. */
static bool was_earlier_path(const struct mk_request_target *a, mk_str path)
{
    while ((a = a->before))
        if (mk_str_eq(a->path, path))
            return true;
    return false;
}

/* Returns 0 or a status. */
static unsigned find_variants(const struct mk_request *r, const struct mk_request_target *a,
                              struct mk_request_path_variants *out)
{
    struct mk_path_variants all;
    unsigned status = mk_path_variants(a->path, a->path_flags & MK_PATH_ENCODED_SLASH,
                                       r->site ? &r->site->scripts : NULL, r->arena, &all);
    if (status)
        return status;
    *out = (struct mk_request_path_variants){.list = mk_arena_alloc(r->arena, all.n * sizeof *all.list + 1),
                                             .n_readings = all.n_readings};
    if (!out->list)
        return 503;
    for (size_t i = 0; i < all.n; i++)
        if (i < all.n_readings || !was_earlier_path(a, all.list[i]))
            out->list[out->n++] = all.list[i];
    return 0;
}

unsigned mk_request_variants_of_target(const struct mk_request *r, const struct mk_request_target *a,
                                       const struct mk_request_path_variants **out)
{
    *out = &none;
    if (MK_LIKELY(!path_may_vary(r, a)))
        return 0;
    if (!a->variants) {
        struct mk_request_path_variants *found = mk_arena_alloc(r->arena, sizeof *found);
        unsigned status = found ? find_variants(r, a, found) : 503;
        if (status)
            return status;
        ((struct mk_request_target *)(uintptr_t)a)->variants = found; /* computed once per path */
    }
    *out = a->variants;
    return 0;
}

/* Adds the path of the Destination and its variants. */
static unsigned add_destination_variants(const struct mk_request *r, const struct mk_request_path_variants *v,
                                         const mk_str **list, size_t *n)
{
    struct mk_request_target *to;
    const struct mk_request_path_variants *more = &none;
    unsigned status = mk_destination_header_target(r, &to);
    if (!status && to)
        status = mk_request_variants_of_target(r, to, &more);
    if (status || !to)
        return status;
    mk_str *all = mk_arena_alloc(r->arena, (v->n + 1 + more->n) * sizeof *all);
    if (!all)
        return 503;
    if (v->n)
        memcpy(all, v->list, v->n * sizeof *all);
    all[v->n] = to->path;
    if (more->n)
        memcpy(all + v->n + 1, more->list, more->n * sizeof *all);
    *list = all;
    *n = v->n + 1 + more->n;
    return 0;
}

unsigned mk_request_variants(const struct mk_request *r, const mk_str **list, size_t *n)
{
    const struct mk_request_path_variants *v;
    unsigned status = mk_request_variants_of_target(r, r->target, &v);
    *list = v->list;
    *n = v->n;
    if (MK_LIKELY(!mk_headers_has(&r->fields, MK_HEADER_DESTINATION)) || status)
        return status;
    status = add_destination_variants(r, v, list, n);
    *n = status ? 0 : *n;
    return status;
}

enum mk_variant mk_request_variant_kind(const struct mk_request *r, size_t i)
{
    const struct mk_request_path_variants *v = r->target->variants ? r->target->variants : &none;
    return i < v->n_readings ? MK_VARIANT_READING
           : i < v->n        ? MK_VARIANT_AFTER_SCRIPT
                             : MK_VARIANT_DESTINATION;
}

void mk_request_set_ambiguous(struct mk_request *r)
{
    r->is_ambiguous = true;
}

/* Do the conditions of the route have the same result for the path and the variant? */
static bool conditions_agree(const struct mk_route *route, const struct mk_request *r, mk_str path,
                             mk_str variant)
{
    struct mk_request *request = (struct mk_request *)(uintptr_t)r; /* conditions may decode its query */
    const struct mk_conditions *when = route->when;
    if (!when || !(when->subjects & (MK_CONDITION_PATH | MK_CONDITION_CONTAINS)))
        return true;
    enum mk_regex_result result = when->match(when, request, variant);
    return result != MK_REGEX_LIMIT && result == when->match(when, request, path);
}

/* Does the variant reach the route `at` as the path does, without matching an earlier route that the path
 * does not match? */
static bool reaches_same_route(const struct mk_request *r, unsigned at, mk_str path, mk_str variant)
{
    const struct mk_vhost *host = r->site;
    enum mk_regex_result result;
    for (size_t i = 0; (i = mk_vhost_next_route(host, i, variant, &result)) <= at; i++) {
        if (result == MK_REGEX_LIMIT || i == host->n_routes ||
            !conditions_agree(&host->routes[i], r, path, variant))
            return false;
        if (i == at)
            return true;
        if (mk_route_matches(&host->routes[i], path) != MK_REGEX_MATCH)
            return false;
    }
    return false;
}

static bool is_redirect_or_error_route(const struct mk_route *route)
{
    return route->handler == &mk_redirect ||
           (route->handler == &mk_status_handler && mk_status_handler_is_error(route->data));
}

/* Would a route that does not match the path itself reject the variant? File handlers pass missing files on
 * to later routes, as do routes whose conditions are false. */
static bool would_be_rejected(const struct mk_request *r, mk_str path, mk_str variant)
{
    const struct mk_vhost *host = r->site;
    enum mk_regex_result result;
    for (size_t i = 0; (i = mk_vhost_next_route(host, i, variant, &result)) < host->n_routes; i++) {
        const struct mk_route *route = &host->routes[i];
        if (result == MK_REGEX_LIMIT)
            return true;
        if (is_redirect_or_error_route(route))
            return mk_route_matches(route, path) != MK_REGEX_MATCH ||
                   !conditions_agree(route, r, path, variant);
        if (!(route->handler->traits & MK_HANDLER_FILES) && !route->when)
            return false;
    }
    return false;
}

/* A variant that the routes treat differently from the path. */
struct conflicting_variant {
    mk_str path, variant; /* absent: none */
};

static unsigned set_conflict(struct conflicting_variant *conflicting_variant, mk_str path, mk_str variant)
{
    *conflicting_variant = (struct conflicting_variant){.path = path, .variant = variant};
    return 400;
}

/* Returns 0 or a status. */
static unsigned find_conflicting_variant(const struct mk_request *r, const struct mk_request_target *a,
                                         unsigned at, struct conflicting_variant *conflicting_variant)
{
    const struct mk_request_path_variants *v;
    unsigned status = mk_request_variants_of_target(r, a, &v);
    for (size_t i = 0; i < v->n_readings; i++)
        if (!reaches_same_route(r, at, a->path, v->list[i]))
            return set_conflict(conflicting_variant, a->path, v->list[i]);
    for (size_t i = v->n_readings; i < v->n; i++)
        if (would_be_rejected(r, a->path, v->list[i]))
            return set_conflict(conflicting_variant, a->path, v->list[i]);
    return status;
}

/* Rejects a path that programs may interpret as one with `..` segments. Returns 0 or a status. */
static unsigned check_hidden_dot_segments(struct mk_request *r, const struct mk_request_target *a)
{
    if (a->path.len > MK_PATH_VARIED_MAX || !mk_path_hides_dot_segments(a->path))
        return 0;
    mk_request_explain(r, "path",
                       "%.*s may be interpreted as a path with a `..` segment: gateways respond with 400 "
                       "(unless the route has paths=raw)",
                       MK_STR_ARG(a->path));
    return 400;
}

/* Checks the path of the Destination header, even if its host is not ours: the backend decides whether the
 * Destination is on another server, and which file it names. */
static unsigned check_destination_path(struct mk_request *r, struct conflicting_variant *conflicting_variant)
{
    struct mk_request_target *to;
    const struct mk_request_path_variants *v = &none;
    unsigned status = mk_destination_header_target(r, &to);
    if (status || !to)
        return status;
    status = check_hidden_dot_segments(r, to);
    if (!status)
        status = mk_request_variants_of_target(r, to, &v);
    if (!status && would_be_rejected(r, r->target->path, to->path))
        return set_conflict(conflicting_variant, to->path, to->path);
    for (size_t i = 0; i < v->n; i++)
        if (would_be_rejected(r, r->target->path, v->list[i]))
            return set_conflict(conflicting_variant, to->path, v->list[i]);
    return status;
}

unsigned mk_request_check_path(struct mk_request *r)
{
    const struct mk_exchange *x = mk_exchange_of(r);
    unsigned status = r->is_ambiguous ? 400 : 0, at = x->at;
    struct conflicting_variant conflicting_variant = {0};
    const struct mk_request_target *a = x->step == MK_DISPATCH_ROUTES ? r->target : NULL;
    if (MK_UNLIKELY(mk_headers_has(&r->fields, MK_HEADER_DESTINATION)) && a && !status)
        status = check_destination_path(r, &conflicting_variant);
    while (!status && a) {
        if (MK_UNLIKELY(path_may_vary(r, a))) {
            status = check_hidden_dot_segments(r, a);
            status = status ? status : find_conflicting_variant(r, a, at, &conflicting_variant);
        }
        at = a->left_at;
        a = a->by == MK_TARGET_BY_ROUTE ? a->before : NULL; /* programs may see the earlier path as well */
    }
    if (conflicting_variant.path.p)
        mk_request_explain(r, "path",
                           "%.*s may be interpreted as %.*s, which leads to another route: gateways respond "
                           "with 400 (unless the route has paths=raw)",
                           MK_STR_ARG(conflicting_variant.path), MK_STR_ARG(conflicting_variant.variant));
    return status;
}
