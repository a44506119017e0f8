/* SPDX-License-Identifier: Apache-2.0 */
#include "service/table.h"

#include <errno.h>
#include <monkey/routes.h>
#include <stdio.h>

enum { DEPTH_MAX = 8, BEFORE_MAX = 64, PLACE = 512 };

/* The routes of one host. */
struct site {
    struct site *next;
    mk_str host; /* empty: any */
    struct mk_router *router;
};

struct duda_table {
    struct site *sites; /* that for any host is the last */
    const struct duda_line **lines;
    size_t n, cap;
};

/* ---- Making ---- */

/* What holds at a line of a table. */
struct scope {
    mk_str prefix, host;
    const struct duda_step *after;
    const struct duda_route *before[BEFORE_MAX];
    size_t n_before;
    unsigned depth;
};

struct making {
    struct mk_config *config;
    const struct duda_service *service;
    struct duda_board *board;
    struct duda_table *table;
    bool failed;
};

/* Say what is wrong with a line of the source. */
static void report(struct making *m, const struct duda_route *r, mk_str why)
{
    mk_config_error(m->config, NULL, NULL, "%s:%d: %.*s", r->file, r->line, MK_STR_ARG(why));
    m->failed = true;
}

static void *alloc(struct making *m, size_t size)
{
    void *p = mk_config_alloc(m->config, size);
    m->failed |= !p;
    return p;
}

static void free_router(void *data)
{
    mk_router_free(data);
}

static struct site *add_site(struct making *m, mk_str host)
{
    struct site *s = alloc(m, sizeof *s);
    struct mk_router *router = s ? mk_router_new() : NULL;
    if (!router || !mk_config_on_end(m->config, free_router, router)) {
        mk_router_free(router);
        m->failed = true;
        return NULL;
    }
    *s = (struct site){.host = host, .router = router};
    struct site **at = &m->table->sites;
    while (*at && (*at)->host.len && host.len == 0)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    return s;
}

static struct site *site_for(struct making *m, mk_str host)
{
    for (struct site *s = m->table->sites; s; s = s->next)
        if (mk_str_eq_nocase(s->host, host))
            return s;
    return add_site(m, host);
}

static bool keep_line(struct making *m, const struct duda_line *line)
{
    struct duda_table *t = m->table;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        const struct duda_line **more = alloc(m, cap * sizeof *more);
        if (!more)
            return false;
        if (t->n)
            memcpy(more, t->lines, t->n * sizeof *more);
        t->lines = more;
        t->cap = cap;
    }
    t->lines[t->n++] = line;
    return true;
}

static bool has_all_methods(const struct duda_route *r)
{
    return mk_str_eq(mk_str_from_c(r->method), MK_STR("*"));
}

static void add_to_router(struct making *m, struct duda_line *line)
{
    char text[MK_ROUTER_PATTERN + 1], where[PLACE];
    const struct duda_route *r = line->route;
    struct mk_buf t = mk_buf_fixed(text, sizeof text), w = mk_buf_fixed(where, sizeof where);
    struct site *site = site_for(m, line->host);
    if (!site)
        return;
    if (!has_all_methods(r))
        mk_buf_addf(&t, "%s ", r->method);
    mk_buf_add(&t, line->pattern);
    mk_buf_addf(&w, "%s:%d", r->file, r->line);
    if (t.failed)
        report(m, r, MK_STR("the pattern is too long"));
    else if (mk_router_add(site->router, mk_buf_str(&t), line, w.failed ? MK_ABSENT : mk_buf_str(&w)))
        report(m, r, mk_router_why(site->router));
}

static mk_str join(struct making *m, mk_str prefix, mk_str path)
{
    char *p = alloc(m, prefix.len + path.len + 1);
    if (!p)
        return MK_STR("/");
    if (prefix.len)
        memcpy(p, prefix.p, prefix.len);
    if (path.len)
        memcpy(p + prefix.len, path.p, path.len);
    return mk_str_of(p, prefix.len + path.len);
}

static struct duda_place *place_of(struct making *m, const struct duda_line *line)
{
    char room[DUDA_PLACE_NAME * 2];
    struct mk_buf name = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&name, "%s %s %.*s%.*s", m->service->name, line->route->method, MK_STR_ARG(line->host),
                MK_STR_ARG(line->pattern));
    return m->board ? duda_board_place(m->board, mk_buf_str(&name)) : NULL;
}

static uint32_t series_of(struct making *m, const struct duda_line *line)
{
    char room[PLACE];
    struct mk_buf pattern = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&pattern, "%.*s%.*s", MK_STR_ARG(line->host), MK_STR_ARG(line->pattern));
    if (!line->place)
        return 0;
    uint32_t series =
        mk_route_get(m->config, mk_str_from_c(m->service->name), mk_str_from_c(line->route->method),
                     pattern.failed ? line->pattern : mk_buf_str(&pattern));
    atomic_store(&line->place->counted, series);
    return series;
}

static void add_route(struct making *m, const struct duda_route *r, const struct scope *s)
{
    struct duda_line *line = alloc(m, sizeof *line);
    const struct duda_route **before = s->n_before ? alloc(m, s->n_before * sizeof *before) : NULL;
    if (m->failed && (!line || (s->n_before && !before)))
        return;
    if (!r->fn || !r->method || !r->path || (r->path[0] != '/' && s->prefix.len == 0)) {
        report(m, r, MK_STR("a route needs a method, a path that begins with /, and a function"));
        return;
    }
    if (r->stack > DUDA_STACK_MAX) {
        report(m, r, MK_STR("a `.stack` is at most 8 MB: what needs more belongs on the heap"));
        return;
    }
    if (s->n_before)
        memcpy(before, s->before, s->n_before * sizeof *before);
    *line = (struct duda_line){.route = r,
                               .pattern = join(m, s->prefix, mk_str_from_c(r->path)),
                               .host = s->host,
                               .after = s->after,
                               .before = before,
                               .n_before = s->n_before};
    line->place = place_of(m, line);
    line->series = series_of(m, line);
    if (keep_line(m, line))
        add_to_router(m, line);
}

static void add_after(struct making *m, const struct duda_route *r, struct scope *s)
{
    struct duda_step *step = alloc(m, sizeof *step);
    if (!step)
        return;
    *step = (struct duda_step){.outer = s->after, .fn = r->fn};
    s->after = step;
}

static void add_before(struct making *m, const struct duda_route *r, struct scope *s)
{
    if (r->kind == DUDA_IS_REQUIRE && (!r->allows || r->status < 400 || r->status > 599))
        report(m, r, MK_STR("DUDA_REQUIRE() needs a predicate and a status from 400 to 599"));
    else if (r->kind == DUDA_IS_BEFORE && !r->fn)
        report(m, r, MK_STR("DUDA_BEFORE() needs a function"));
    else if (s->n_before == BEFORE_MAX)
        report(m, r, MK_STR("more than 64 functions would run before one handler"));
    else
        s->before[s->n_before++] = r;
}

/* A table inside a table is no deeper than DEPTH_MAX: a stack of scopes instead of a recursion. */
struct walk {
    const struct duda_route *at[DEPTH_MAX];
    struct scope scopes[DEPTH_MAX];
    size_t depth;
};

static void enter_group(struct making *m, struct walk *w, const struct duda_route *r)
{
    mk_str prefix = mk_str_from_c(r->path);
    if (w->depth + 1 == DEPTH_MAX) {
        report(m, r, MK_STR("groups are nested more than eight deep"));
        return;
    }
    if (!r->routes || (prefix.len && (prefix.p[0] != '/' || prefix.p[prefix.len - 1] == '/'))) {
        report(m, r,
               MK_STR("a group needs a table, and a path that begins with / and does not end with one"));
        return;
    }
    struct scope *outer = &w->scopes[w->depth], *inner = &w->scopes[w->depth + 1];
    *inner = *outer;
    inner->prefix = join(m, outer->prefix, prefix);
    w->at[++w->depth] = r->routes;
}

static void take(struct making *m, struct walk *w, const struct duda_route *r)
{
    struct scope *s = &w->scopes[w->depth];
    switch (r->kind) {
    case DUDA_IS_ROUTE:
        add_route(m, r, s);
        break;
    case DUDA_IS_GROUP:
        enter_group(m, w, r);
        break;
    case DUDA_IS_BEFORE:
    case DUDA_IS_REQUIRE:
        add_before(m, r, s);
        break;
    case DUDA_IS_AFTER:
        add_after(m, r, s);
        break;
    case DUDA_IS_HOST:
        s->host = mk_str_from_c(r->path);
        break;
    case DUDA_END:
    case DUDA_IS_START:
    case DUDA_IS_STOP:
    default:
        break;
    }
}

static void walk(struct making *m, const struct duda_route *routes)
{
    static const struct walk fresh;
    struct walk *w = alloc(m, sizeof *w);
    if (!w)
        return;
    *w = fresh;
    w->at[0] = routes;
    for (;;) {
        const struct duda_route *r = w->at[w->depth]++;
        if (r->kind != DUDA_END)
            take(m, w, r);
        else if (w->depth-- == 0)
            return;
    }
}

struct duda_table *duda_table_make(struct mk_config *config, const struct duda_service *service)
{
    struct duda_table *t = mk_config_alloc(config, sizeof *t);
    struct making m = {.config = config, .table = t, .service = service, .board = duda_board_get(config)};
    if (!t || !m.board)
        return NULL;
    walk(&m, service->routes);
    return m.failed ? NULL : t;
}

/* ---- Looking up ---- */

static bool is_for(const struct site *s, mk_str host)
{
    if (s->host.len == 0 || mk_str_eq_nocase(s->host, host))
        return true;
    mk_str rest = mk_str_skip(s->host, 1);
    return mk_str_starts(s->host, MK_STR("*.")) && host.len > rest.len &&
           mk_str_eq_nocase(mk_str_skip(host, host.len - rest.len), rest);
}

const struct duda_line *duda_table_find(const struct duda_table *t, mk_str host, mk_str method, mk_str path,
                                        struct mk_router_match *match, const struct mk_router **router)
{
    *router = NULL;
    for (const struct site *s = t->sites; s; s = s->next) {
        if (!is_for(s, host))
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

const struct duda_line *duda_table_at(const struct duda_table *t, size_t i)
{
    return i < t->n ? t->lines[i] : NULL;
}
