/* SPDX-License-Identifier: Apache-2.0 */
/* Other paths that programs may take the path of a request for, and whether routes tell them apart. */
#include "web/variants.h"

#include "http/path_variants.h"
#include "web/exchange.h"

static const struct mk_variants none;

/* 0, or a status. */
static unsigned find(const struct mk_request *r, const struct mk_asked *a, struct mk_variants *found)
{
    bool has_slash = a->path_flags & MK_PATH_ENCODED_SLASH;
    mk_str list[MK_PATH_VARIANTS_MAX];
    unsigned status = mk_path_variants(a->path, has_slash, r->arena, list, &found->n);
    if (status)
        return status;
    found->list = mk_arena_alloc(r->arena, found->n * sizeof *list + 1);
    if (!found->list)
        return 503;
    memcpy(found->list, list, found->n * sizeof *list);
    return 0;
}

unsigned mk_variants_of(const struct mk_request *r, const struct mk_asked *a, const struct mk_variants **out)
{
    *out = &none;
    if (MK_LIKELY(!mk_path_may_vary(a->path, a->path_flags & MK_PATH_ENCODED_SLASH)))
        return 0;
    if (!a->variants) {
        struct mk_variants *found = mk_arena_alloc(r->arena, sizeof *found);
        unsigned status = found ? find(r, a, found) : 503;
        if (status)
            return status;
        ((struct mk_asked *)(uintptr_t)a)->variants = found; /* they belong to the path, and are found once */
    }
    *out = a->variants;
    return 0;
}

unsigned mk_request_variants(const struct mk_request *r, const mk_str **list, size_t *n)
{
    const struct mk_variants *v;
    unsigned status = mk_variants_of(r, r->asked, &v);
    *list = v->list;
    *n = v->n;
    return status;
}

void mk_request_set_ambiguous(struct mk_request *r)
{
    r->is_ambiguous = true;
}

/* Does the variant come to the route `at` as the path has: past all routes that the path has passed? */
static bool comes_to(const struct mk_host *host, unsigned at, mk_str path, mk_str variant)
{
    enum mk_regex_result result;
    for (size_t i = 0; (i = mk_host_next_route(host, i, variant, &result)) <= at; i++) {
        if (result == MK_REGEX_GAVE_UP || i == host->n_routes)
            return false;
        if (i == at)
            return true;
        if (mk_route_matches(&host->routes[i], path) != MK_REGEX_MATCHES)
            return false;
    }
    return false;
}

/* A variant that the routes lead elsewhere. */
struct other {
    mk_str path, variant; /* absent: there is none */
};

/* 0, or a status. */
static unsigned find_other(const struct mk_request *r, const struct mk_asked *a, unsigned at,
                           struct other *other)
{
    const struct mk_variants *v;
    unsigned status = mk_variants_of(r, a, &v);
    for (size_t i = 0; i < v->n; i++)
        if (!comes_to(r->site, at, a->path, v->list[i])) {
            *other = (struct other){.path = a->path, .variant = v->list[i]};
            return 400;
        }
    return status;
}

static unsigned check_dots(struct mk_request *r, const struct mk_asked *a)
{
    bool may_hide = mk_path_may_vary(a->path, a->path_flags & MK_PATH_ENCODED_SLASH);
    if (MK_LIKELY(!may_hide || a->path.len > MK_PATH_VARIED_MAX || !mk_path_hides_dots(a->path)))
        return 0;
    mk_request_explain(r, "path",
                       "%.*s may be read as one with the segment `..`: gateways answer 400 (unless the route "
                       "says paths=raw)",
                       MK_STR_ARG(a->path));
    return 400;
}

unsigned mk_request_check_path(struct mk_request *r)
{
    const struct mk_exchange *x = mk_exchange_of(r);
    unsigned status = r->is_ambiguous ? 400 : 0, at = x->at;
    struct other other = {0};
    const struct mk_asked *a = x->step == MK_FLOW_ROUTES ? r->asked : NULL;
    while (!status && a) {
        status = check_dots(r, a);
        if (!status)
            status = find_other(r, a, at, &other);
        at = a->left_at;
        a = a->by == MK_ASKED_BY_ROUTE ? a->before : NULL; /* programs may see that path, too */
    }
    if (other.path.p)
        mk_request_explain(r, "path",
                           "%.*s may be read as %.*s, which leads to another route: gateways answer 400 "
                           "(unless the route says paths=raw)",
                           MK_STR_ARG(other.path), MK_STR_ARG(other.variant));
    return status;
}
