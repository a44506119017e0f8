/* SPDX-License-Identifier: Apache-2.0 */
#include "service/route_policy.h"

#include <duda/middleware.h>
#include <duda/store_backend.h>
#include <errno.h>
#include <monkey/text.h>

#include "service/duda_ctx.h"

/* Returns a DUDA_BEFORE() entry at the source line of another entry. */
static struct duda_route *new_before(struct mk_config *config, const struct duda_route *entry,
                                     const char *name, duda_fn *fn, const void *data)
{
    struct duda_route *r = mk_config_alloc(config, sizeof *r);
    if (r)
        *r = (struct duda_route){.kind = DUDA_IS_BEFORE,
                                 .fn = fn,
                                 .name = name,
                                 .file = entry->file,
                                 .line = entry->line,
                                 .data = data};
    return r;
}

const struct duda_route *duda_route_policy_auth(struct mk_config *config, const struct duda_route *entry,
                                                duda_fn *fn, const void *data)
{
    return new_before(config, entry, ".auth", fn, data);
}

/* ---- Rate limits ---- */

struct rate_limit {
    struct duda_rate rate;
    struct duda_rate_table *table;
    mk_str (*key)(struct duda_ctx *d); /* NULL: client address */
    uint64_t name_hash;
    mk_str max_text; /* rate.max */
};

/* Counts a use of the limit. All limits share a table, so the key contains the name of the limit. */
static bool count_use(struct duda_ctx *d, const struct rate_limit *limit, struct duda_rate_state *state)
{
    struct mk_addr address;
    mk_str key = limit->key ? limit->key(d) : MK_STR_NULL;
    struct {
        uint64_t name, is_address, key[sizeof address.ip / sizeof(uint64_t)];
    } use = {.name = limit->name_hash, .is_address = !key.p};
    if (key.p) {
        use.key[0] = mk_hash(&limit->table->key, key);
    } else {
        mk_addr_client_prefix(mk_request_client_addr(d->request), &address);
        memcpy(use.key, address.ip, sizeof address.ip);
    }
    return duda_rate_table_use(limit->table, mk_str_of((const char *)&use, sizeof use), &limit->rate,
                               mk_request_time(d->request), state);
}

static int add_number_header(struct duda_ctx *d, mk_str name, uint32_t n)
{
    enum { DIGITS = 10 };
    char *buf = mk_request_alloc(d->request, DIGITS);
    if (!buf)
        return -ENOMEM;
    struct mk_buf text = mk_buf_fixed(buf, DIGITS);
    mk_buf_add_num(&text, n);
    return mk_response_add_header_nocopy(d->response, name, mk_buf_str(&text));
}

/* Removes the headers that the rate limit of an outer group has added. */
static void remove_rate_headers(struct duda_ctx *d)
{
    (void)mk_response_remove_header(d->response, MK_STR("RateLimit-Limit"));
    (void)mk_response_remove_header(d->response, MK_STR("RateLimit-Remaining"));
    (void)mk_response_remove_header(d->response, MK_STR("RateLimit-Reset"));
}

static int set_rate_headers(struct duda_ctx *d, const struct rate_limit *limit,
                            const struct duda_rate_state *state)
{
    if (duda_head_is_final(d))
        return -EALREADY;
    if (mk_response_header(d->response, MK_STR("RateLimit-Limit")).p)
        remove_rate_headers(d);
    int e = mk_response_add_header_nocopy(d->response, MK_STR("RateLimit-Limit"), limit->max_text);
    e = e ? e : add_number_header(d, MK_STR("RateLimit-Remaining"), state->remaining);
    return e ? e : add_number_header(d, MK_STR("RateLimit-Reset"), state->reset_s);
}

static duda_verdict check_rate(struct duda_ctx *d)
{
    const struct rate_limit *limit = duda_middleware_data(d);
    struct duda_rate_state state;
    bool is_allowed = count_use(d, limit, &state);
    int e = set_rate_headers(d, limit, &state);
    if (!e && !is_allowed)
        e = add_number_header(d, MK_STR("Retry-After"), state.reset_s);
    return e ? e : is_allowed ? DUDA_NEXT : 429;
}

const struct duda_route *duda_route_policy_rate(struct mk_config *config, const struct duda_route *entry,
                                                const struct duda_rate *rate, mk_str name)
{
    struct rate_limit *limit = mk_config_alloc(config, sizeof *limit);
    struct duda_rate_table *table = duda_shared_memory(config, "duda-rates", sizeof *table);
    if (!limit || !table)
        return NULL;
    duda_rate_table_init(table);
    mk_str max = mk_str_from_c(entry->rate);
    *limit = (struct rate_limit){.rate = *rate,
                                 .table = table,
                                 .key = entry->rate_key,
                                 .name_hash = mk_hash(&table->key, name),
                                 .max_text = mk_config_copy(config, mk_str_cut(&max, '/'))};
    return limit->max_text.p ? new_before(config, entry, ".rate", check_rate, limit) : NULL;
}

/* ---- CORS ---- */

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

static bool are_labels(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_host_char(s.p[i]))
            return false;
    return s.len > 0 && s.p[0] != '.';
}

/* Returns whether the origin matches the pattern. A `*` in the pattern matches one or more labels of a host
 * name. */
static bool origin_matches(mk_str pattern, mk_str origin)
{
    mk_str rest = pattern, scheme = mk_str_cut(&rest, '*');
    if (!rest.p)
        return mk_str_eq(pattern, origin);
    return mk_str_starts(origin, scheme) && origin.len > scheme.len + rest.len &&
           mk_str_eq(mk_str_skip(origin, origin.len - rest.len), rest) &&
           are_labels(mk_str_first(mk_str_skip(origin, scheme.len), origin.len - scheme.len - rest.len));
}

static bool allows_all(const struct duda_cors *cors)
{
    return mk_str_eq(mk_str_from_c(cors->origins), MK_STR("*"));
}

static bool allows_origin(const struct duda_cors *cors, mk_str origin)
{
    mk_str rest = mk_str_from_c(cors->origins), pattern;
    while (origin.len && (pattern = mk_str_word(&rest)).len)
        if (origin_matches(pattern, origin))
            return true;
    return origin.len && allows_all(cors);
}

static bool is_origin_pattern(mk_str pattern)
{
    mk_str rest = pattern;
    if (mk_str_eq(pattern, MK_STR("null")))
        return true;
    mk_str scheme = mk_str_cut(&rest, ':');
    if (!rest.p || !scheme.len || !mk_str_starts(rest, MK_STR("//")))
        return false;
    mk_str port = mk_str_skip(rest, 2), host = mk_str_cut(&port, ':');
    if (mk_str_starts(host, MK_STR("*.")))
        host = mk_str_skip(host, 2);
    uint64_t n;
    return are_labels(host) && (!port.p || mk_num_parse(port, &n));
}

const char *duda_route_policy_cors_error(const struct duda_cors *cors)
{
    mk_str rest = mk_str_from_c(cors ? cors->origins : NULL), pattern;
    if (!rest.len)
        return "DUDA_CORS() needs a policy with `.origins`";
    if (allows_all(cors))
        return cors->credentials ? "DUDA_CORS(): `.credentials` need a list of `.origins`, not \"*\"" : NULL;
    while ((pattern = mk_str_word(&rest)).len)
        if (!is_origin_pattern(pattern))
            return "DUDA_CORS(): an origin is a scheme, a lowercase host name and possibly a port, such as "
                   "\"https://app.example.org\" or \"https://*.example.org\", without a path";
    return NULL;
}

/* The value must live until the end of the request. */
static void set_cors_header(struct mk_response *response, mk_str name, mk_str value)
{
    if (mk_response_header(response, name).p)
        (void)mk_response_remove_header(response, name);
    (void)mk_response_add_header_nocopy(response, name, value);
}

void duda_route_policy_add_cors_headers(struct mk_request *request, struct mk_response *response,
                                        const struct duda_cors *cors)
{
    mk_str origin = mk_request_header(request, MK_STR("Origin"));
    bool has_list = !allows_all(cors);
    if (has_list)
        (void)mk_response_add_header_nocopy(response, MK_STR("Vary"), MK_STR("Origin"));
    if (!allows_origin(cors, origin))
        return;
    set_cors_header(response, MK_STR("Access-Control-Allow-Origin"), has_list ? origin : MK_STR("*"));
    if (cors->credentials)
        set_cors_header(response, MK_STR("Access-Control-Allow-Credentials"), MK_STR("true"));
    if (cors->expose)
        (void)mk_response_set_header(response, MK_STR("Access-Control-Expose-Headers"),
                                     mk_str_from_c(cors->expose));
}

static duda_verdict add_cors_headers(struct duda_ctx *d)
{
    duda_route_policy_add_cors_headers(d->request, d->response, duda_middleware_data(d));
    return DUDA_NEXT;
}

const struct duda_route *duda_route_policy_cors(struct mk_config *config, const struct duda_route *entry,
                                                const struct duda_cors *cors)
{
    return new_before(config, entry, "DUDA_CORS", add_cors_headers, cors);
}

/* ---- Preflight requests ---- */

mk_str duda_route_policy_preflight_method(const struct mk_request *request)
{
    if (mk_request_method(request) != MK_METHOD_OPTIONS || !mk_request_header(request, MK_STR("Origin")).len)
        return MK_STR_NULL;
    return mk_request_header(request, MK_STR("Access-Control-Request-Method"));
}

void duda_route_policy_respond_preflight(struct mk_request *request, struct mk_response *response,
                                         const struct duda_cors *cors, mk_str method)
{
    char buf[24];
    struct mk_buf age = mk_buf_fixed(buf, sizeof buf);
    mk_str names = mk_request_header(request, MK_STR("Access-Control-Request-Headers"));
    (void)mk_response_set_status(response, 204);
    (void)mk_response_add_header(response, MK_STR("Vary"),
                                 MK_STR("Access-Control-Request-Method, Access-Control-Request-Headers"));
    duda_route_policy_add_cors_headers(request, response, cors);
    if (!allows_origin(cors, mk_request_header(request, MK_STR("Origin"))))
        return;
    (void)mk_response_add_header(response, MK_STR("Access-Control-Allow-Methods"), method);
    if (cors->headers)
        names = mk_str_from_c(cors->headers);
    if (names.len)
        (void)mk_response_add_header(response, MK_STR("Access-Control-Allow-Headers"), names);
    mk_buf_add_num(&age, cors->max_age_s ? cors->max_age_s : 600);
    (void)mk_response_add_header(response, MK_STR("Access-Control-Max-Age"), mk_buf_str(&age));
}
