/* SPDX-License-Identifier: Apache-2.0 */
#include "service/route_table.h"

#include <monkey/route_stats.h>
#include <stdio.h>

#include "service/route_policy.h"
#include "text/schema_check.h"

enum { DEPTH_MAX = 8, BEFORE_MAX = 64, POLICIES_MAX = 5, NAME_SIZE = 512, ERROR_SIZE = 512 };

/* The routes of one host. */
struct host_routes {
    struct host_routes *next;
    mk_str host; /* empty: any */
    struct mk_router *router;
};

struct duda_route_table {
    struct host_routes *hosts;                   /* the entry for any host is the last one */
    const struct duda_error_scope *error_scopes; /* the last entry first */
    const struct duda_cors_scope *cors_scopes;
    bool has_cors;
    const struct duda_route_entry **entries;
    size_t n, cap;
};

/* ---- Building ---- */

/* The group settings in effect at a line of the table. */
struct group_scope {
    mk_str prefix, host;
    const struct duda_middleware *after, *errors;
    const struct duda_route *before[BEFORE_MAX];
    size_t n_before;
    const struct duda_cors *cors;
    bool shares_paths; /* the prefix of the group is "": unknown paths belong to the table around it */
};

struct route_table_builder {
    struct mk_config *config;
    const struct duda_service *service;
    const struct duda_data_checks *checks;
    struct duda_crash_table *crash_table;
    struct duda_route_table *table;
    bool failed;
};

/* Reports an error at the line of the source that defines the route. */
static void report_route_error(struct route_table_builder *m, const struct duda_route *r, mk_str error)
{
    mk_config_error(m->config, NULL, NULL, "%s:%d: %.*s", r->file, r->line, MK_STR_ARG(error));
    m->failed = true;
}

static bool check_data(struct route_table_builder *m, const struct duda_route *r, duda_fn *fn,
                       const void *data)
{
    const char *error = duda_data_checks_error(m->checks, fn, data);
    if (error)
        report_route_error(m, r, mk_str_from_c(error));
    return !error;
}

static void *alloc_or_fail(struct route_table_builder *m, size_t size)
{
    void *p = mk_config_alloc(m->config, size);
    m->failed |= !p;
    return p;
}

static void free_router(void *data)
{
    mk_router_free(data);
}

static struct host_routes *add_host_routes(struct route_table_builder *m, mk_str host)
{
    struct host_routes *s = alloc_or_fail(m, sizeof *s);
    struct mk_router *router = s ? mk_router_new() : NULL;
    if (!router || !mk_config_add_cleanup(m->config, free_router, router)) {
        mk_router_free(router);
        m->failed = true;
        return NULL;
    }
    *s = (struct host_routes){.host = host, .router = router};
    struct host_routes **at = &m->table->hosts;
    while (*at && (*at)->host.len && host.len == 0)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    return s;
}

static struct host_routes *get_or_add_host_routes(struct route_table_builder *m, mk_str host)
{
    for (struct host_routes *s = m->table->hosts; s; s = s->next)
        if (mk_str_eq_nocase(s->host, host))
            return s;
    return add_host_routes(m, host);
}

static bool append_route_entry(struct route_table_builder *m, const struct duda_route_entry *entry)
{
    struct duda_route_table *t = m->table;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        const struct duda_route_entry **more = alloc_or_fail(m, cap * sizeof *more);
        if (!more)
            return false;
        if (t->n)
            memcpy(more, t->entries, t->n * sizeof *more);
        t->entries = more;
        t->cap = cap;
    }
    t->entries[t->n++] = entry;
    return true;
}

static bool has_all_methods(const struct duda_route *r)
{
    return mk_str_eq(mk_str_from_c(r->method), MK_STR("*"));
}

static void add_to_router(struct route_table_builder *m, struct duda_route_entry *entry)
{
    char text[MK_ROUTER_PATTERN_MAX + 1], position[NAME_SIZE];
    const struct duda_route *r = entry->route;
    struct mk_buf t = mk_buf_fixed(text, sizeof text), w = mk_buf_fixed(position, sizeof position);
    struct host_routes *host_routes = get_or_add_host_routes(m, entry->host);
    if (!host_routes)
        return;
    if (!has_all_methods(r))
        mk_buf_addf(&t, "%s ", r->method);
    mk_buf_add(&t, entry->pattern);
    mk_buf_addf(&w, "%s:%d", r->file, r->line);
    if (t.failed)
        report_route_error(m, r, MK_STR("the pattern is too long"));
    else if (mk_router_add(host_routes->router, mk_buf_str(&t), entry,
                           w.failed ? MK_STR_NULL : mk_buf_str(&w)))
        report_route_error(m, r, mk_router_error(host_routes->router));
}

static mk_str join_paths(struct route_table_builder *m, mk_str prefix, mk_str path)
{
    char *p = alloc_or_fail(m, prefix.len + path.len + 1);
    if (!p)
        return MK_STR("/");
    if (prefix.len)
        memcpy(p, prefix.p, prefix.len);
    if (path.len)
        memcpy(p + prefix.len, path.p, path.len);
    return mk_str_of(p, prefix.len + path.len);
}

static struct duda_route_slot *add_crash_slot(struct route_table_builder *m,
                                              const struct duda_route_entry *entry)
{
    char buf[DUDA_ROUTE_SLOT_NAME_MAX * 2];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&name, "%s %s %.*s%.*s", m->service->name,
                entry->route->method ? entry->route->method : "errors of", MK_STR_ARG(entry->host),
                MK_STR_ARG(entry->pattern));
    return m->crash_table ? duda_crash_table_add_route(m->crash_table, mk_buf_str(&name)) : NULL;
}

static uint32_t add_route_series(struct route_table_builder *m, const struct duda_route_entry *entry)
{
    char buf[NAME_SIZE];
    struct mk_buf pattern = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&pattern, "%.*s%.*s", MK_STR_ARG(entry->host), MK_STR_ARG(entry->pattern));
    if (!entry->route_slot)
        return 0;
    uint32_t series =
        mk_route_stats_series(m->config, mk_str_from_c(m->service->name), mk_str_from_c(entry->route->method),
                              pattern.failed ? entry->pattern : mk_buf_str(&pattern));
    atomic_store(&entry->route_slot->stats_series, series);
    return series;
}

static bool check_schemas(struct route_table_builder *m, const struct duda_route *r)
{
    char buf[ERROR_SIZE];
    struct mk_buf error = mk_buf_fixed(buf, sizeof buf);
    bool good = duda_schema_check(r->query, &error) && duda_schema_check(r->request_body, &error) &&
                duda_schema_check(r->form, &error) && duda_schema_check(r->response_body, &error);
    if (!good)
        report_route_error(m, r, mk_buf_str(&error));
    return good;
}

/* ---- `.rate`, `.auth` and DUDA_CORS() ---- */

static void push_policy(struct route_table_builder *m, const struct duda_route **list, size_t *n,
                        const struct duda_route *policy)
{
    m->failed |= !policy;
    if (policy)
        list[(*n)++] = policy;
}

static void push_rate(struct route_table_builder *m, const struct duda_route *r, mk_str pattern,
                      const struct duda_route **list, size_t *n)
{
    char buf[NAME_SIZE * 2];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&name, "%s %s %.*s %s:%d", m->service->name, r->method ? r->method : "", MK_STR_ARG(pattern),
                r->file, r->line);
    struct duda_rate rate;
    if (duda_rate_parse(mk_str_from_c(r->rate), &rate))
        push_policy(m, list, n,
                    duda_route_policy_rate(m->config, r, &rate, name.failed ? pattern : mk_buf_str(&name)));
    else
        report_route_error(m, r,
                           MK_STR("a `.rate` is a number up to 262143 and a unit: \"10/minute\" (second, "
                                  "minute, hour or day)"));
}

/* Adds the limit by client address, which applies before all other middleware of the entry. */
static void push_address_rate(struct route_table_builder *m, const struct duda_route *r, mk_str pattern,
                              const struct duda_route **list, size_t *n)
{
    if (r->rate && !r->rate_key)
        push_rate(m, r, pattern, list, n);
}

/* Adds the authentication, and then the limit with a `.rate_key`, which may depend on the user. */
static void push_auth(struct route_table_builder *m, const struct duda_route *r, mk_str pattern,
                      const struct duda_route **list, size_t *n)
{
    const struct duda_route_auth *auth = r->auth;
    if (auth && !auth->authenticate)
        report_route_error(m, r, MK_STR("an `.auth` needs a function `.authenticate`"));
    else if (auth && check_data(m, r, auth->authenticate, auth->authenticate_data))
        push_policy(m, list, n,
                    duda_route_policy_auth(m->config, r, auth->authenticate, auth->authenticate_data));
    if (auth && auth->authorize && check_data(m, r, auth->authorize, auth->authorize_data))
        push_policy(m, list, n, duda_route_policy_auth(m->config, r, auth->authorize, auth->authorize_data));
    if (r->rate && r->rate_key)
        push_rate(m, r, pattern, list, n);
    if (r->rate_key && !r->rate)
        report_route_error(m, r, MK_STR("a `.rate_key` needs a `.rate`"));
}

/* Returns the number of functions that push_address_rate() and push_auth() add. */
static size_t count_policies(const struct duda_route *r)
{
    size_t n = r->rate ? 1 : 0;
    if (r->auth && r->auth->authenticate)
        n++;
    if (r->auth && r->auth->authorize)
        n++;
    return n;
}

/* Sets the functions that run before a route: its CORS policy and the limit by client address, then the
 * functions of its groups, then its authentication. */
static void set_before(struct route_table_builder *m, struct duda_route_entry *entry,
                       const struct group_scope *s)
{
    const struct duda_route *r = entry->route;
    bool has_policies = s->cors || r->rate || r->rate_key || r->auth;
    size_t n = 0, max = s->n_before + (has_policies ? POLICIES_MAX : 0);
    const struct duda_route **before = max ? alloc_or_fail(m, max * sizeof *before) : NULL;
    if (!before)
        return;
    if (s->cors)
        push_policy(m, before, &n, duda_route_policy_cors(m->config, r, s->cors));
    push_address_rate(m, r, entry->pattern, before, &n);
    if (s->n_before)
        memcpy(before + n, s->before, s->n_before * sizeof *before);
    n += s->n_before;
    push_auth(m, r, entry->pattern, before, &n);
    entry->before = before;
    entry->n_before = n;
}

static void set_cors(struct route_table_builder *m, const struct duda_route *r, struct group_scope *s)
{
    const char *error = r->data ? duda_route_policy_cors_error(r->data) : NULL;
    if (error)
        report_route_error(m, r, mk_str_from_c(error));
    s->cors = error ? NULL : r->data;
    m->table->has_cors |= s->cors != NULL;
    struct duda_cors_scope *scope =
        s->shares_paths || !s->prefix.len ? NULL : alloc_or_fail(m, sizeof *scope);
    if (!scope)
        return;
    *scope = (struct duda_cors_scope){
        .next = m->table->cors_scopes, .host = s->host, .prefix = s->prefix, .cors = s->cors};
    m->table->cors_scopes = scope;
}

static void add_route(struct route_table_builder *m, const struct duda_route *r, const struct group_scope *s)
{
    struct duda_route_entry *entry = alloc_or_fail(m, sizeof *entry);
    if (!entry)
        return;
    if (!r->fn || !r->method || !r->path || (r->path[0] != '/' && s->prefix.len == 0)) {
        report_route_error(m, r, MK_STR("a route needs a method, a path that begins with /, and a function"));
        return;
    }
    if (r->stack > DUDA_STACK_MAX) {
        report_route_error(m, r, MK_STR("a `.stack` is at most 8 MB: put large data on the heap"));
        return;
    }
    if (!check_schemas(m, r) || !check_data(m, r, r->fn, r->data))
        return;
    *entry = (struct duda_route_entry){.route = r,
                                       .table = m->table,
                                       .pattern = join_paths(m, s->prefix, mk_str_from_c(r->path)),
                                       .host = s->host,
                                       .after = s->after,
                                       .errors = s->errors,
                                       .cors = s->cors};
    set_before(m, entry, s);
    entry->route_slot = add_crash_slot(m, entry);
    entry->series = add_route_series(m, entry);
    if (append_route_entry(m, entry))
        add_to_router(m, entry);
}

/* On failure, returns `outer`. */
static const struct duda_middleware *push_middleware(struct route_table_builder *m,
                                                     const struct duda_route *r,
                                                     const struct duda_middleware *outer,
                                                     struct duda_route_slot *route_slot)
{
    struct duda_middleware *step = r->fn ? alloc_or_fail(m, sizeof *step) : NULL;
    if (!r->fn)
        report_route_error(m, r, MK_STR("DUDA_AFTER() and DUDA_ERROR() need a function"));
    if (!step)
        return outer;
    *step = (struct duda_middleware){.outer = outer, .entry = r, .route_slot = route_slot};
    return step;
}

static void add_error_handler(struct route_table_builder *m, const struct duda_route *r,
                              struct group_scope *s)
{
    struct duda_route_entry entry = {.route = r, .pattern = s->prefix, .host = s->host};
    entry.route_slot = add_crash_slot(m, &entry);
    entry.errors = s->errors = push_middleware(m, r, s->errors, entry.route_slot);
    struct duda_error_scope *scope = s->shares_paths ? NULL : alloc_or_fail(m, sizeof *scope);
    if (!scope)
        return;
    *scope = (struct duda_error_scope){.next = m->table->error_scopes, .prefix = s->prefix, .entry = entry};
    m->table->error_scopes = scope;
}

static void add_before(struct route_table_builder *m, const struct duda_route *r, struct group_scope *s)
{
    if (r->kind == DUDA_IS_REQUIRE && (!r->predicate || r->status < 400 || r->status > 599))
        report_route_error(m, r, MK_STR("DUDA_REQUIRE() needs a predicate and a status from 400 to 599"));
    else if (r->kind != DUDA_IS_REQUIRE && !r->fn)
        report_route_error(m, r, MK_STR("DUDA_BEFORE() and DUDA_AROUND() need a function"));
    else if (s->n_before == BEFORE_MAX)
        report_route_error(m, r, MK_STR("more than 64 functions would run before one handler"));
    else if (r->kind == DUDA_IS_REQUIRE || check_data(m, r, r->fn, r->data))
        s->before[s->n_before++] = r;
}

/* Walks nested tables, which are at most DEPTH_MAX deep, with a stack of scopes instead of recursion. */
struct walk_route_table {
    const struct duda_routes *tables[DEPTH_MAX];
    size_t at[DEPTH_MAX]; /* index of the next entry */
    struct group_scope scopes[DEPTH_MAX];
    size_t depth;
};

static void enter_route_group(struct route_table_builder *m, struct walk_route_table *w,
                              const struct duda_route *r)
{
    mk_str prefix = mk_str_from_c(r->path);
    if (w->depth + 1 == DEPTH_MAX) {
        report_route_error(m, r, MK_STR("groups are nested more than eight deep"));
        return;
    }
    if (!r->routes || (prefix.len && (prefix.p[0] != '/' || prefix.p[prefix.len - 1] == '/'))) {
        report_route_error(
            m, r, MK_STR("a group needs a table, and a path that begins with / and does not end with one"));
        return;
    }
    if (!duda_routes_are_supported(r->routes)) {
        report_route_error(
            m, r, MK_STR("the table of the group was built for another version of Duda: rebuild it"));
        return;
    }
    struct group_scope *outer = &w->scopes[w->depth], *inner = &w->scopes[w->depth + 1];
    *inner = *outer;
    inner->prefix = join_paths(m, outer->prefix, prefix);
    inner->shares_paths = prefix.len == 0;
    if (inner->n_before + count_policies(r) > BEFORE_MAX) {
        report_route_error(m, r, MK_STR("more than 64 functions would run before one handler"));
        return;
    }
    push_address_rate(m, r, inner->prefix, inner->before, &inner->n_before);
    push_auth(m, r, inner->prefix, inner->before, &inner->n_before);
    w->tables[++w->depth] = r->routes;
    w->at[w->depth] = 0;
}

static const mk_str security_words[] = {
    MK_STR_INIT("bearer"),  MK_STR_INIT("basic"),   MK_STR_INIT("jwt"),   MK_STR_INIT("session"),
    MK_STR_INIT("header:"), MK_STR_INIT("cookie:"), MK_STR_INIT("query:")};

/* A word of the list that ends with a colon needs a name after it. */
static bool is_security_word(mk_str word)
{
    for (size_t i = 0; i < MK_LEN(security_words); i++) {
        mk_str known = security_words[i];
        bool needs_name = mk_str_ends(known, MK_STR(":"));
        if (needs_name ? word.len > known.len && mk_str_starts(word, known) : mk_str_eq(word, known))
            return true;
    }
    return false;
}

/* A misspelled word would silently remove the lock from the API document. */
static void check_security(struct route_table_builder *m, const struct duda_route *r)
{
    mk_str rest = mk_str_from_c(r->security ? r->security : ""), word;
    while ((word = mk_str_word(&rest)).len) {
        char text[ERROR_SIZE];
        if (is_security_word(word))
            continue;
        snprintf(
            text, sizeof text,
            "`.security` contains `%.*s`: expected bearer, basic, jwt, session, header:NAME, cookie:NAME "
            "or query:NAME",
            MK_STR_ARG(mk_str_first(word, 64)));
        report_route_error(m, r, mk_str_from_c(text));
        mk_config_suggest(m->config, word, security_words, MK_LEN(security_words));
    }
}

static void add_table_entry(struct route_table_builder *m, struct walk_route_table *w,
                            const struct duda_route *r)
{
    struct group_scope *s = &w->scopes[w->depth];
    check_security(m, r);
    switch (r->kind) {
    case DUDA_IS_ROUTE:
        add_route(m, r, s);
        break;
    case DUDA_IS_GROUP:
        enter_route_group(m, w, r);
        break;
    case DUDA_IS_BEFORE:
    case DUDA_IS_REQUIRE:
    case DUDA_IS_AROUND:
        add_before(m, r, s);
        break;
    case DUDA_IS_AFTER:
        s->after = push_middleware(m, r, s->after, NULL);
        break;
    case DUDA_IS_ERROR:
        add_error_handler(m, r, s);
        break;
    case DUDA_IS_CORS:
        set_cors(m, r, s);
        break;
    case DUDA_IS_HOST:
        s->host = mk_str_from_c(r->path);
        break;
    case DUDA_IS_START:
    case DUDA_IS_START_TASK:
    case DUDA_IS_STOP:
    default:
        break;
    }
}

/* An entry of a service that was built with an earlier release lacks the members that were added since. */
static const struct duda_route *upgrade_route_layout(struct route_table_builder *m,
                                                     const struct duda_routes *t, size_t i)
{
    if (t->entry_size == sizeof(struct duda_route))
        return duda_routes_at(t, i);
    struct duda_route *full = alloc_or_fail(m, sizeof *full);
    if (full)
        memcpy(full, duda_routes_at(t, i), t->entry_size);
    return full;
}

static void walk_route_table(struct route_table_builder *m, const struct duda_routes *routes)
{
    static const struct walk_route_table fresh;
    struct walk_route_table *w = alloc_or_fail(m, sizeof *w);
    if (!w)
        return;
    *w = fresh;
    w->tables[0] = routes;
    for (;;) {
        const struct duda_routes *t = w->tables[w->depth];
        const struct duda_route *r =
            w->at[w->depth] < t->n ? upgrade_route_layout(m, t, w->at[w->depth]++) : NULL;
        if (r)
            add_table_entry(m, w, r);
        else if (w->depth-- == 0)
            return;
    }
}

static const char *url_name(const struct duda_route_entry *entry)
{
    return entry->route->url_name ? entry->route->url_name : entry->route->name;
}

/* Reports routes with the same name for duda_url_for() and different patterns, if one of them has this name as
 * its `.url_name`. Routes with the same handler, or with handlers of the same name in several files, are
 * common: for them, only duda_url_for() with that name fails. */
static void check_url_names(struct route_table_builder *m)
{
    const struct duda_route_table *t = m->table;
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct duda_route_entry *a = t->entries[i], *b = t->entries[k];
            char text[ERROR_SIZE];
            if ((!a->route->url_name && !b->route->url_name) || strcmp(url_name(a), url_name(b)) != 0 ||
                mk_str_eq(a->pattern, b->pattern))
                continue;
            snprintf(text, sizeof text,
                     "the route at %s:%d has a different pattern, but the same name `%s` for duda_url_for()",
                     b->route->file, b->route->line, url_name(b));
            report_route_error(m, a->route, mk_str_from_c(text));
        }
}

struct duda_route_table *duda_route_table_new(struct mk_config *config, const struct duda_service *service,
                                              const struct duda_data_checks *checks)
{
    struct duda_route_table *t = mk_config_alloc(config, sizeof *t);
    struct route_table_builder m = {.config = config,
                                    .table = t,
                                    .service = service,
                                    .checks = checks,
                                    .crash_table = duda_crash_table_get(config)};
    if (!t || !m.crash_table)
        return NULL;
    walk_route_table(&m, service->routes);
    check_url_names(&m);
    return m.failed ? NULL : t;
}

/* ---- Lookup ---- */

static bool host_matches(mk_str pattern, mk_str host)
{
    if (pattern.len == 0 || mk_str_eq_nocase(pattern, host))
        return true;
    mk_str rest = mk_str_skip(pattern, 1);
    return mk_str_starts(pattern, MK_STR("*.")) && host.len > rest.len &&
           mk_str_eq_nocase(mk_str_skip(host, host.len - rest.len), rest);
}

const struct duda_route_entry *duda_route_table_find(const struct duda_route_table *t, mk_str host,
                                                     mk_str method, mk_str path,
                                                     struct mk_router_match *match,
                                                     const struct mk_router **router)
{
    *router = NULL;
    for (const struct host_routes *s = t->hosts; s; s = s->next) {
        if (!host_matches(s->host, host))
            continue;
        enum mk_router_result found = mk_router_find(s->router, method, path, match);
        if (found == MK_ROUTER_FOUND)
            return match->data;
        if (found == MK_ROUTER_NO_METHOD) {
            *router = s->router;
            return NULL;
        }
    }
    return NULL;
}

/* Does the path begin with the segments of the prefix? A parameter of the prefix matches any segment. */
static bool has_prefix(mk_str path, mk_str prefix)
{
    while (prefix.len) {
        if (path.len == 0 || path.p[0] != '/')
            return false;
        prefix = mk_str_skip(prefix, 1);
        path = mk_str_skip(path, 1);
        mk_str expected = mk_str_first(prefix, mk_str_find(prefix, '/')),
               segment = mk_str_first(path, mk_str_find(path, '/'));
        bool is_param = expected.len > 1 && expected.p[0] == ':';
        if (is_param ? segment.len == 0 : !mk_str_eq(expected, segment))
            return false;
        prefix = mk_str_skip(prefix, expected.len);
        path = mk_str_skip(path, segment.len);
    }
    return path.len == 0 || path.p[0] == '/';
}

static size_t count_segments(mk_str prefix)
{
    size_t n = 0;
    for (size_t i = 0; i < prefix.len; i++)
        n += prefix.p[i] == '/';
    return n;
}

const struct duda_route_entry *duda_route_table_find_errors(const struct duda_route_table *t, mk_str host,
                                                            mk_str path)
{
    const struct duda_error_scope *found = NULL;
    for (const struct duda_error_scope *s = t->error_scopes; s; s = s->next)
        if (host_matches(s->entry.host, host) && has_prefix(path, s->prefix) &&
            (!found || count_segments(s->prefix) > count_segments(found->prefix)))
            found = s;
    return found ? &found->entry : NULL;
}

bool duda_route_table_has_cors(const struct duda_route_table *t)
{
    return t->has_cors;
}

const struct duda_cors *duda_route_table_find_cors(const struct duda_route_table *t, mk_str host, mk_str path)
{
    const struct duda_cors_scope *found = NULL;
    for (const struct duda_cors_scope *s = t->cors_scopes; s; s = s->next)
        if (host_matches(s->host, host) && has_prefix(path, s->prefix) &&
            (!found || count_segments(s->prefix) > count_segments(found->prefix)))
            found = s;
    return found ? found->cors : NULL;
}

const struct duda_route_entry *duda_route_table_at(const struct duda_route_table *t, size_t i)
{
    return i < t->n ? t->entries[i] : NULL;
}
