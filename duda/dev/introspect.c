/* SPDX-License-Identifier: Apache-2.0 */
#include "introspect.h"

#include "options.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool load_service_object(struct dev_introspection *d, const char *command, const char *name)
{
    char symbol[DEV_NAME_MAX + 32];
    d->handle = dlopen(d->built.object, RTLD_NOW | RTLD_LOCAL);
    if (!d->handle)
        return dev_print_error(false, command, NULL, dlerror());
    snprintf(symbol, sizeof symbol, "duda_service_of_%s", name);
    const struct duda_service *const *found = dlsym(d->handle, symbol);
    if (!found || (*found)->abi != DUDA_ABI) {
        dlclose(d->handle);
        return dev_print_error(false, command, name, "the object contains no such DUDA_SERVICE");
    }
    d->service = *found;
    return true;
}

static bool compile_and_load(struct dev_introspection *d, const char *command,
                             const struct dev_source *source)
{
    struct dev_paths paths;
    if (!dev_paths_find(&paths))
        return false;
    const struct dev_compile how = {.paths = &paths, .kind = DEV_COMPILE_QUICK};
    dev_compile(&how, source, &d->built);
    dev_print_text(stderr, mk_buf_str(&d->built.messages));
    bool ok = d->built.ok && load_service_object(d, command, source->name);
    if (!ok)
        dev_compile_result_free(&d->built);
    return ok;
}

bool dev_introspect_load(struct dev_introspection *d, const char *command,
                         const struct dev_service_words *words)
{
    struct dev_source source;
    char problem[DEV_PROBLEM_MAX];
    *d = (struct dev_introspection){0};
    if (!dev_service_load(&source, words, problem))
        return dev_print_error(false, command, words->at[0], problem);
    bool ok = compile_and_load(d, command, &source);
    dev_source_free(&source);
    return ok;
}

void dev_introspect_free(struct dev_introspection *d)
{
    dlclose(d->handle);
    dev_compile_result_free(&d->built);
}

/* ---- Routes ---- */

struct walk_routes {
    void (*each)(const struct dev_route *r, void *ctx);
    void *ctx;
    struct dev_route route;
};

static void walk_routes(struct walk_routes *w, const struct duda_routes *table, size_t prefix,
                        unsigned depth);

/* Adds what a route or a group specifies for itself to what it inherits. */
static void add_options(struct dev_route *route, const struct duda_route *entry)
{
    if (entry->security) {
        route->security = entry->security;
        route->security_has_status = entry->kind == DUDA_IS_REQUIRE;
    }
    route->has_authentication = route->has_authentication || entry->auth;
    route->has_authorization = route->has_authorization || (entry->auth && entry->auth->authorize);
    route->has_rate = route->has_rate || entry->rate;
}

static void restore_options(struct dev_route *route, const struct dev_route *before)
{
    route->security = before->security;
    route->security_has_status = before->security_has_status;
    route->has_authentication = before->has_authentication;
    route->has_authorization = before->has_authorization;
    route->has_rate = before->has_rate;
}

static void walk_route_group(struct walk_routes *w, const struct duda_route *group, size_t prefix,
                             unsigned depth)
{
    const struct dev_route before = w->route;
    w->route.group = group;
    w->route.group_len = prefix;
    add_options(&w->route, group);
    walk_routes(w, group->routes, prefix, depth + 1);
    restore_options(&w->route, &before);
    w->route.group = before.group;
    w->route.group_len = before.group_len;
    w->route.host = before.host;
    w->route.n_guards = before.n_guards;
    w->route.sends_problems = before.sends_problems;
}

/* Middleware applies to all later entries of its table, and to the groups among them. */
static void add_middleware(struct dev_route *route, const struct duda_route *entry)
{
    add_options(route, entry);
    if (entry->kind == DUDA_IS_ERROR)
        route->sends_problems = strcmp(entry->name, "duda_error_problem") == 0;
    if (entry->kind == DUDA_IS_REQUIRE && route->n_guards < DEV_GUARDS_MAX)
        route->guards[route->n_guards++] = entry->status;
}

static void visit_route(struct walk_routes *w, const struct duda_route *entry)
{
    const struct dev_route before = w->route;
    add_options(&w->route, entry);
    w->each(&w->route, w->ctx);
    restore_options(&w->route, &before);
}

/* Visits the routes of a table. The object was compiled with the headers of this release, so the entries have
 * the size that this code expects. */
static void walk_routes(struct walk_routes *w, const struct duda_routes *table, size_t prefix, unsigned depth)
{
    for (const struct duda_route *entry = table->first; entry < table->first + table->n; entry++) {
        struct mk_buf text = mk_buf_fixed(w->route.pattern, DEV_PATTERN_MAX - 1);
        text.len = prefix;
        mk_buf_add(&text, mk_str_from_c(entry->path));
        w->route.pattern[text.len] = '\0';
        w->route.line = entry;
        if (entry->kind == DUDA_IS_ROUTE)
            visit_route(w, entry);
        else if (entry->kind == DUDA_IS_GROUP && depth < DEV_GROUPS_MAX)
            walk_route_group(w, entry, text.len, depth);
        else if (entry->kind == DUDA_IS_HOST)
            w->route.host = entry->path;
        else if (entry->kind == DUDA_IS_BEFORE || entry->kind == DUDA_IS_AROUND ||
                 entry->kind == DUDA_IS_REQUIRE || entry->kind == DUDA_IS_ERROR)
            add_middleware(&w->route, entry);
    }
}

void dev_introspect_each_route(const struct dev_introspection *d,
                               void (*each)(const struct dev_route *r, void *ctx), void *ctx)
{
    struct walk_routes w = {.each = each, .ctx = ctx, .route = {.host = ""}};
    walk_routes(&w, d->service->routes, 0, 0);
}

bool dev_introspect_next_segment(mk_str *pattern, mk_str *text, struct dev_param *p)
{
    *p = (struct dev_param){MK_STR_NULL, MK_STR("")};
    if (pattern->len == 0 || pattern->p[0] != '/')
        return false;
    *pattern = mk_str_skip(*pattern, 1);
    *text = mk_str_first(*pattern, mk_str_find(*pattern, '/'));
    *pattern = mk_str_skip(*pattern, text->len);
    char kind = text->len > 1 ? text->p[0] : 0;
    if (kind != ':' && kind != '*')
        return true;
    mk_str rest = mk_str_skip(*text, 1);
    p->name = mk_str_first(rest, mk_str_find(rest, '<'));
    if (kind == '*')
        p->type = MK_STR("rest");
    else if (p->name.len + 2 < rest.len)
        p->type = mk_str_of(rest.p + p->name.len + 1, rest.len - p->name.len - 2);
    return true;
}
