/* SPDX-License-Identifier: Apache-2.0 */
/* Uses only the public interface, so that loadable objects can contain a copy of this file. */
#include "http/router_param_type.h"
#include "http/router_tree.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/sized.h>

enum { ERROR_MAX = 4096, REASON_MAX = 512, SHOWN = 200, FIRST_ROUTES = 16 };

static const uint64_t any_method = UINT64_MAX;

struct route_text {
    mk_str text, where;
    void *data;
};

struct route {
    struct route_text as_added;
    mk_str *names; /* names of the parameters; the text of the route is in the same block */
    size_t n_names;
    uint64_t methods; /* bitmap of method numbers; UINT64_MAX: any method */
    uint32_t next;    /* next route with the same pattern; UINT32_MAX: none */
};

struct mk_router {
    struct mk_router_tree tree;
    struct route *routes;
    uint32_t n, cap;
    uint32_t n_methods;
    mk_str methods[MK_ROUTER_METHODS_MAX]; /* method names: literals, or slices of the texts of routes */
    struct mk_buf error_text;
};

static const mk_str usual_methods[] = {MK_STR_INIT("GET"),    MK_STR_INIT("HEAD"),  MK_STR_INIT("POST"),
                                       MK_STR_INIT("PUT"),    MK_STR_INIT("PATCH"), MK_STR_INIT("DELETE"),
                                       MK_STR_INIT("OPTIONS")};
enum { GET, HEAD };

/* ---- Creating and freeing ---- */

struct mk_router *mk_router_new(void)
{
    struct mk_router *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->error_text = mk_buf_growing(ERROR_MAX);
    for (size_t i = 0; i < MK_LEN(usual_methods); i++)
        r->methods[r->n_methods++] = usual_methods[i];
    if (!mk_router_tree_init(&r->tree)) {
        mk_router_free(r);
        return NULL;
    }
    return r;
}

void mk_router_free(struct mk_router *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n; i++)
        mk_mem_free(r->routes[i].names);
    mk_mem_free(r->routes);
    mk_router_tree_fini(&r->tree);
    mk_buf_free(&r->error_text);
    mk_mem_free(r);
}

/* ---- Methods ---- */

/* Returns the number of a method; MK_ROUTER_METHODS_MAX: the router has no such method. */
static uint32_t find_method(const struct mk_router *r, mk_str name)
{
    for (uint32_t i = 0; i < r->n_methods; i++)
        if (mk_str_eq(r->methods[i], name))
            return i;
    return MK_ROUTER_METHODS_MAX;
}

/* Returns the bitmap of a list such as `GET,POST`. 0: the router has too many different methods. */
static uint64_t methods_bitmask(struct mk_router *r, mk_str names)
{
    uint64_t bits = 0;
    if (names.len == 0)
        return any_method;
    while (names.p) {
        mk_str name = mk_str_cut(&names, ',');
        uint32_t i = find_method(r, name);
        if (i == MK_ROUTER_METHODS_MAX) {
            if (r->n_methods == MK_ROUTER_METHODS_MAX)
                return 0;
            r->methods[i = r->n_methods++] = name;
        }
        bits |= UINT64_C(1) << i;
    }
    return bits;
}

void mk_router_allow(const struct mk_router *r, uint64_t methods, struct mk_buf *out)
{
    bool is_first = true;
    for (uint32_t i = 0; i < r->n_methods; i++) {
        if (!(methods >> i & 1))
            continue;
        if (!is_first)
            mk_buf_add(out, MK_STR(", "));
        mk_buf_add(out, r->methods[i]);
        is_first = false;
    }
}

/* ---- Adding ---- */

static void describe_route(struct mk_router *r, const struct route_text *route)
{
    mk_str text = mk_str_first(route->text, SHOWN), where = mk_str_first(route->where, SHOWN);
    mk_buf_addf(&r->error_text, "`%.*s%s`", MK_STR_ARG(text), text.len < route->text.len ? "..." : "");
    if (where.len)
        mk_buf_addf(&r->error_text, " (%.*s)", MK_STR_ARG(where));
}

static int reject_route(struct mk_router *r, const struct route *route, int err, const char *error)
{
    if (err == -ENOMEM) {
        mk_buf_clear(&r->error_text);
        mk_buf_addf(&r->error_text, "out of memory for the route ");
        describe_route(r, &route->as_added);
    } else {
        mk_buf_addf(&r->error_text, "%s", error);
    }
    mk_mem_free(route->names);
    return err;
}

static mk_str append_copy(char **to, mk_str s)
{
    mk_str copy = mk_str_of(*to, s.len);
    if (s.len)
        memcpy(*to, s.p, s.len);
    *to += s.len;
    return copy;
}

/* Copies the text of the route; its methods and parameter names become slices of the copy. */
static bool copy_route(struct route *route, struct mk_router_pattern *p)
{
    mk_str text = route->as_added.text, where = route->as_added.where;
    mk_str *names = mk_mem_alloc(p->n_params * sizeof *names + text.len + where.len);
    if (!names)
        return false;
    char *to = (char *)(names + p->n_params);
    route->as_added.text = append_copy(&to, text);
    route->as_added.where = append_copy(&to, where);
    p->methods.p = route->as_added.text.p + (p->methods.p - text.p);
    for (size_t i = 0; i < p->n; i++) {
        mk_str name = p->segments[i].text;
        if (p->segments[i].type != MK_ROUTER_NO_TYPE)
            names[route->n_names++] = mk_str_of(route->as_added.text.p + (name.p - text.p), name.len);
    }
    route->names = names;
    return true;
}

static bool reserve_route(struct mk_router *r)
{
    if (r->n < r->cap)
        return true;
    uint32_t cap = r->cap ? 2 * r->cap : FIRST_ROUTES;
    struct route *routes = mk_mem_realloc(r->routes, cap * sizeof *routes);
    if (!routes)
        return false;
    r->routes = routes;
    r->cap = cap;
    return true;
}

/* Returns a route that matches the same requests; NULL: none. */
static const struct route *find_conflicting_route(const struct mk_router *r,
                                                  const struct mk_router_node *node, uint64_t methods)
{
    for (uint32_t i = node->routes; i != UINT32_MAX; i = r->routes[i].next) {
        const struct route *other = &r->routes[i];
        if ((other->methods == any_method) == (methods == any_method) && (other->methods & methods))
            return other;
    }
    return NULL;
}

/* Adds the route to the list of its node, where routes that accept any method come last. */
static void link_route_to_node(struct mk_router *r, struct mk_router_node *node, struct route route)
{
    uint32_t *at = &node->routes;
    while (route.methods == any_method && *at != UINT32_MAX)
        at = &r->routes[*at].next;
    route.next = *at;
    *at = r->n;
    r->routes[r->n++] = route;
}

static int insert_route(struct mk_router *r, struct route *route, const struct mk_router_pattern *p)
{
    uint32_t n_methods = r->n_methods;
    mk_router_node_id id = reserve_route(r) ? mk_router_tree_add(&r->tree, p->segments, p->n) : 0;
    if (!id)
        return reject_route(r, route, -ENOMEM, NULL);
    struct mk_router_node *node = &r->tree.nodes[id];
    route->methods = methods_bitmask(r, p->methods);
    const struct route *rival = find_conflicting_route(r, node, route->methods);
    if (route->methods && !rival) {
        link_route_to_node(r, node, *route);
        return 0;
    }
    r->n_methods = n_methods;
    describe_route(r, &route->as_added);
    if (!rival)
        return reject_route(r, route, -EINVAL, ": the routes use too many different methods");
    mk_buf_addf(&r->error_text, " and ");
    describe_route(r, &rival->as_added);
    return reject_route(r, route, -EEXIST, " match the same requests; change one of them");
}

int mk_router_add(struct mk_router *r, mk_str text, void *data, mk_str where)
{
    struct mk_router_pattern pattern;
    char buf[MK_ROUTER_PATTERN_MAX], reason[REASON_MAX];
    struct mk_buf error = mk_buf_fixed(reason, sizeof reason);
    struct route route = {.as_added = {.text = mk_str_trim(text), .where = where, .data = data}};
    mk_buf_clear(&r->error_text);
    if (r->n == MK_ROUTER_ROUTES_MAX)
        return reject_route(r, &route, -EINVAL, "too many routes");
    if (!mk_router_pattern_parse(&pattern, route.as_added.text, buf, &error)) {
        describe_route(r, &route.as_added);
        mk_buf_addf(&r->error_text, ": %.*s", MK_STR_ARG(mk_buf_str(&error)));
        return -EINVAL;
    }
    if (!copy_route(&route, &pattern))
        return reject_route(r, &route, -ENOMEM, NULL);
    return insert_route(r, &route, &pattern);
}

mk_str mk_router_error(const struct mk_router *r)
{
    return mk_buf_str(&r->error_text);
}

/* ---- Searching ---- */

struct route_search {
    const struct mk_router *router;
    const char *end;           /* end of the path */
    uint64_t method, fallback; /* bits of the method, and of GET as a fallback for HEAD */
    struct mk_router_match *out;
};

/* Returns the node's route for the method; UINT32_MAX: none. Adds the methods of the other routes to
 * s->out->allowed. */
static uint32_t choose_route(struct route_search *s, mk_router_node_id node)
{
    uint32_t substitute = UINT32_MAX;
    for (uint32_t i = s->router->tree.nodes[node].routes; i != UINT32_MAX; i = s->router->routes[i].next) {
        uint64_t methods = s->router->routes[i].methods;
        if (methods & s->method && methods != any_method)
            return i;
        if (substitute == UINT32_MAX && (methods == any_method || methods & s->fallback))
            substitute = i;
        s->out->allowed |= methods;
    }
    return substitute;
}

/* Finds the most specific route below `node` for the path from `begin` on. Each node is visited at most once,
 * which bounds backtracking; the recursion depth is limited by the longest pattern. */
static uint32_t match_subtree(struct route_search *s, mk_router_node_id node, const char *begin,
                              size_t n_params)
{
    const struct mk_router_tree *t = &s->router->tree;
    const char *slash = memchr(begin, '/', (size_t)(s->end - begin)), *end = slash ? slash : s->end;
    mk_str segment = mk_str_of(begin, (size_t)(end - begin));
    mk_router_node_id at = mk_router_tree_find_text(t, node, segment);
    if (at) {
        uint32_t found = slash ? match_subtree(s, at, slash + 1, n_params) : choose_route(s, at);
        if (found != UINT32_MAX)
            return found;
    }
    for (at = t->nodes[node].params; at; at = t->nodes[at].next) {
        enum mk_router_type type = t->nodes[at].type;
        bool is_rest = type == MK_ROUTER_REST;
        mk_str value = is_rest ? mk_str_of(begin, (size_t)(s->end - begin)) : segment;
        if (!mk_router_type_parse(type, value, &s->out->params[n_params]))
            continue;
        uint32_t found =
            slash && !is_rest ? match_subtree(s, at, slash + 1, n_params + 1) : choose_route(s, at);
        if (found != UINT32_MAX)
            return found;
    }
    return UINT32_MAX;
}

static void fill_match(struct mk_router_match *out, const struct route *route)
{
    out->data = route->as_added.data;
    out->n = route->n_names;
    for (size_t i = 0; i < out->n; i++)
        out->params[i].name = route->names[i];
}

static enum mk_router_result find_route(const struct mk_router *r, mk_str method, mk_str path,
                                        struct mk_router_match *out)
{
    uint32_t number = find_method(r, method);
    struct route_search s = {.router = r, .end = path.p + path.len, .out = out};
    s.method = number < MK_ROUTER_METHODS_MAX ? UINT64_C(1) << number : 0;
    s.fallback = number == HEAD ? UINT64_C(1) << GET : 0;
    out->data = NULL;
    out->route = SIZE_MAX;
    out->allowed = 0;
    out->n = 0;
    if (path.len == 0 || path.p[0] != '/')
        return MK_ROUTER_NO_PATH;
    uint32_t found = match_subtree(&s, 0, path.p + 1, 0);
    if (found == UINT32_MAX) {
        out->allowed |= out->allowed & UINT64_C(1) << GET ? UINT64_C(1) << HEAD : 0;
        return out->allowed ? MK_ROUTER_NO_METHOD : MK_ROUTER_NO_PATH;
    }
    out->allowed = 0;
    out->route = found;
    fill_match(out, &r->routes[found]);
    return MK_ROUTER_FOUND;
}

/* For callers with an older, smaller struct. */
static __attribute__((noinline)) enum mk_router_result find_route_copied(const struct mk_router *r,
                                                                         mk_str method, mk_str path,
                                                                         struct mk_router_match *out,
                                                                         size_t out_size)
{
    struct mk_router_match full = {0};
    enum mk_router_result result = find_route(r, method, path, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

enum mk_router_result mk_router_find_sized(const struct mk_router *r, mk_str method, mk_str path,
                                           struct mk_router_match *out, size_t out_size)
{
    return out_size < sizeof *out ? find_route_copied(r, method, path, out, out_size)
                                  : find_route(r, method, path, out);
}
