/* SPDX-License-Identifier: Apache-2.0 */
#include "cors.h"

static const struct cors_rule *find_rule_for_path(const struct cors *cors, mk_str path)
{
    for (const struct cors_rule *r = cors->v; r < cors->v + cors->n; r++)
        if (!r->when.has_path || mk_pattern_matches(&r->when.path, path))
            return r;
    return NULL;
}

/* Returns whether the text that `*` matched contains only host name labels. Other characters, such as `/`
 * or `:`, could end the host name early and make a foreign origin match. */
static bool are_host_labels(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' &&
            s.p[i] != '.')
            return false;
    return s.len && s.p[0] != '.' && s.p[s.len - 1] != '.';
}

static bool origin_matches(const struct cors_origin *o, mk_str origin)
{
    if (!o->back.p)
        return mk_str_eq_nocase(origin, o->front);
    if (origin.len <= o->front.len + o->back.len)
        return false;
    mk_str rest = mk_str_skip(origin, o->front.len);
    return mk_str_eq_nocase(mk_str_first(origin, o->front.len), o->front) &&
           mk_str_eq_nocase(mk_str_skip(rest, rest.len - o->back.len), o->back) &&
           are_host_labels(mk_str_first(rest, rest.len - o->back.len));
}

static bool is_origin_allowed(const struct cors_rule *r, mk_str origin)
{
    if (!origin.p || r->any)
        return origin.p != NULL;
    for (size_t i = 0; i < r->n; i++)
        if (origin_matches(&r->origins[i], origin))
            return true;
    return false;
}

static bool is_preflight(const struct mk_request *request)
{
    return mk_request_method(request) == MK_METHOD_OPTIONS &&
           mk_request_received_header(request, MK_STR("Origin")).p &&
           mk_request_header(request, MK_STR("Access-Control-Request-Method")).p;
}

bool headers_cors_match_preflight(const struct cors *cors, struct mk_request *request, unsigned *status)
{
    if (!is_preflight(request))
        return false;
    const struct cors_rule *r = find_rule_for_path(cors, mk_request_path(request));
    if (!r)
        return false;
    bool ok = is_origin_allowed(r, mk_request_header(request, MK_STR("Origin")));
    mk_request_explain(request, "headers",
                       ok ? "preflight request accepted" : "preflight request rejected: unknown origin");
    *status = ok ? 204 : 403;
    return true;
}

static void add_header_if_set(struct response_facts *f, mk_str name, mk_str value)
{
    if (value.p)
        headers_response_add(f, name, value);
}

static void add_cors_headers(const struct cors_rule *r, struct response_facts *f, mk_str origin)
{
    /* The request's text lives as long as the response needs it, and is_origin_allowed() has checked every
     * byte. */
    add_header_if_set(f, MK_STR("Access-Control-Allow-Origin"), r->any ? MK_STR("*") : origin);
    if (r->credentials)
        add_header_if_set(f, MK_STR("Access-Control-Allow-Credentials"), MK_STR("true"));
    if (!is_preflight(f->request)) {
        add_header_if_set(f, MK_STR("Access-Control-Expose-Headers"), r->expose);
        return;
    }
    add_header_if_set(f, MK_STR("Access-Control-Allow-Methods"), r->methods);
    add_header_if_set(f, MK_STR("Access-Control-Allow-Headers"), r->headers);
    add_header_if_set(f, MK_STR("Access-Control-Max-Age"), r->max_age);
}

/* Removes the application's CORS headers, because two CORS policies would conflict. */
static void remove_app_cors_headers(struct response_facts *f)
{
    headers_response_remove(f, MK_STR("Access-Control-Allow-Origin"));
    headers_response_remove(f, MK_STR("Access-Control-Allow-Credentials"));
    headers_response_remove(f, MK_STR("Access-Control-Expose-Headers"));
    headers_response_remove(f, MK_STR("Access-Control-Allow-Methods"));
    headers_response_remove(f, MK_STR("Access-Control-Allow-Headers"));
    headers_response_remove(f, MK_STR("Access-Control-Max-Age"));
}

void headers_cors_apply(const struct cors *cors, struct response_facts *facts)
{
    const struct cors_rule *r = cors->n ? find_rule_for_path(cors, facts->path) : NULL;
    if (!r)
        return;
    mk_str origin = mk_request_received_header(facts->request, MK_STR("Origin"));
    remove_app_cors_headers(facts);
    if (!r->any) /* a cache must not reuse a response to one origin for another, or for none */
        headers_response_add(facts, MK_STR("Vary"), MK_STR("Origin"));
    if (is_origin_allowed(r, origin))
        add_cors_headers(r, facts, origin);
}
