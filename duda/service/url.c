/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the URLs of routes from their patterns. */
#include "service/url.h"

#include <duda/url.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdio.h>

#include "service/route_table.h"

#undef duda_url_for /* defined below, not called */

enum { URL_MAX = 8192, NUMBER_SIZE = 32, PARAMS_MAX = 64, PROBLEM_SIZE = 512 };

/* A URL that is being built. */
struct url_builder {
    struct duda_ctx *d;
    const char *name;
    const struct duda_entry *params;
    size_t n;
    uint64_t used; /* bit set: the parameters that the pattern contains */
    struct mk_buf out;
};

static bool report_problem(struct url_builder *u, const char *problem, mk_str param)
{
    duda_log(u->d, MK_LOG_ERROR, "duda_url_for(\"%s\"): %s%s%.*s%s", u->name, problem, param.p ? " `" : "",
             MK_STR_ARG(param), param.p ? "`" : "");
    (void)duda_reason(u->d, -EINVAL, "duda_url_for(\"%s\"): %s%s%.*s%s", u->name, problem,
                      param.p ? " `" : "", MK_STR_ARG(param), param.p ? "`" : "");
    return false;
}

/* ---- The route ---- */

static bool has_name(const struct duda_route *r, const char *name)
{
    return strcmp(r->url_name ? r->url_name : r->name, name) == 0;
}

/* Returns the first route with this name. *other is then a route with the same name and another pattern; NULL:
 * there is none. */
static const struct duda_route_entry *find_named_route(const struct duda_route_table *t, const char *name,
                                                       const struct duda_route_entry **other)
{
    const struct duda_route_entry *found = NULL, *entry;
    *other = NULL;
    for (size_t i = 0; t && !*other && (entry = duda_route_table_at(t, i)); i++) {
        if (!has_name(entry->route, name))
            continue;
        if (!found)
            found = entry;
        else if (!mk_str_eq(found->pattern, entry->pattern))
            *other = entry;
    }
    return found;
}

static void format_ambiguity(char text[PROBLEM_SIZE], const struct duda_route *a, const struct duda_route *b)
{
    snprintf(text, PROBLEM_SIZE,
             "routes with different patterns have this name, at %s:%d and %s:%d: give them a `.url_name`",
             a->file, a->line, b->file, b->line);
}

static const struct duda_route_entry *find_route(struct url_builder *u)
{
    char text[PROBLEM_SIZE] = "there is no such route";
    const struct duda_route_entry *other,
        *found = find_named_route(u->d->route_entry->table, u->name, &other);
    if (found && !other)
        return found;
    if (found)
        format_ambiguity(text, found->route, other->route);
    (void)report_problem(u, text, MK_STR_NULL);
    return NULL;
}

/* ---- At load ---- */

static void suggest_route_name(struct mk_config *config, const struct duda_route_table *t, const char *name)
{
    size_t n = 0;
    while (duda_route_table_at(t, n))
        n++;
    mk_str *names = mk_config_alloc(config, (n + 1) * sizeof *names);
    for (size_t i = 0; names && i < n; i++) {
        const struct duda_route *r = duda_route_table_at(t, i)->route;
        names[i] = mk_str_from_c(r->url_name ? r->url_name : r->name);
    }
    if (names)
        mk_config_suggest(config, mk_str_from_c(name), names, n);
}

void duda_url_check_names(struct mk_config *config, const struct duda_service *service,
                          const struct duda_route_table *t)
{
    for (const struct duda_url_use *const *at = service->url_uses; at < service->url_uses_end; at++) {
        const struct duda_url_use *use = *at;
        const struct duda_route_entry *other, *found;
        char text[PROBLEM_SIZE] = "no route has this name";
        if (!use || !use->name || ((found = find_named_route(t, use->name, &other)) && !other))
            continue;
        if (found)
            format_ambiguity(text, found->route, other->route);
        mk_config_warn(config, NULL, NULL, "%s:%d: duda_url_for(\"%s\"): %s", use->file, use->line, use->name,
                       text);
        if (!found)
            suggest_route_name(config, t, use->name);
    }
}

/* ---- The prefix ---- */

mk_str duda_url_mount_prefix(struct duda_ctx *d)
{
    mk_str path;
    if (!d->request)
        return MK_STR("");
    for (size_t i = 0; (path = mk_request_path_at(d->request, i)).p; i++)
        if (d->path.p >= path.p && d->path.p <= path.p + path.len)
            return mk_str_first(path, (size_t)(d->path.p - path.p));
    return mk_request_path(d->request); /* the path is the prefix itself */
}

/* ---- Values ---- */

/* Formats a value. Returns an absent string unless the value is a string, a number or a boolean. */
static mk_str format_value(struct duda_ctx *d, const struct duda_value *v)
{
    char buf[NUMBER_SIZE];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    switch (v->kind) {
    case DUDA_VALUE_TEXT:
        return v->of.text;
    case DUDA_VALUE_BOOL:
    case DUDA_VALUE_INTEGER:
    case DUDA_VALUE_UNSIGNED:
    case DUDA_VALUE_NUMBER:
        duda_value_write(&text, v);
        return duda_strdup(d, mk_buf_str(&text));
    case DUDA_VALUE_NULL:
    case DUDA_VALUE_RAW:
    case DUDA_VALUE_BYTES:
    case DUDA_VALUE_TIMESTAMP:
    case DUDA_VALUE_STRUCT:
    case DUDA_VALUE_STRUCTS:
    case DUDA_VALUE_LIST:
    case DUDA_VALUE_MAP:
    default:
        return MK_STR_NULL;
    }
}

static bool is_dot_segment(mk_str s)
{
    return mk_str_eq(s, MK_STR(".")) || mk_str_eq(s, MK_STR(".."));
}

static bool is_path(mk_str text)
{
    if (!text.len || text.p[0] == '/' || memchr(text.p, 0, text.len))
        return false;
    while (text.p) {
        mk_str segment = mk_str_cut(&text, '/');
        if (is_dot_segment(segment) || (!segment.len && text.p))
            return false;
    }
    return true;
}

static bool is_segment(mk_str text)
{
    return is_path(text) && !memchr(text.p, '/', text.len);
}

static bool is_digits(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.len > 0;
}

/* ---- The path ---- */

static bool find_param(struct url_builder *u, mk_str name, mk_str *value)
{
    for (size_t i = 0; i < u->n; i++)
        if (mk_str_eq(mk_str_from_c(u->params[i].name), name)) {
            u->used |= (uint64_t)1 << i;
            *value = format_value(u->d, &u->params[i].value);
            return value->p ||
                   report_problem(u, "expected a string, a number or a boolean for the parameter", name);
        }
    return report_problem(u, "the pattern needs the parameter", name);
}

/* Adds the value of `:name`, `:name<int>` or `*name`. */
static bool add_param(struct url_builder *u, mk_str segment)
{
    bool is_rest = segment.p[0] == '*';
    mk_str type = mk_str_skip(segment, 1), name = mk_str_cut(&type, '<'), value;
    if (!find_param(u, name, &value))
        return false;
    bool is_int = type.p && mk_str_eq(type, MK_STR("int>"));
    if (is_int ? !is_digits(value) : is_rest ? !is_path(value) : !is_segment(value))
        return report_problem(u, "the pattern does not allow the value of the parameter", name);
    mk_url_escape(&u->out, value);
    return true;
}

static bool add_path(struct url_builder *u, mk_str pattern)
{
    mk_str rest = mk_str_skip(pattern, 1);
    while (rest.p) {
        mk_str segment = mk_str_cut(&rest, '/');
        mk_buf_add_char(&u->out, '/');
        if (segment.len > 1 && (segment.p[0] == ':' || segment.p[0] == '*')) {
            if (!add_param(u, segment))
                return false;
        } else {
            mk_url_escape(&u->out, segment);
        }
    }
    return true;
}

static bool add_query(struct url_builder *u)
{
    char sep = '?';
    for (size_t i = 0; i < u->n; i++) {
        const struct duda_value *v = &u->params[i].value;
        if ((u->used >> i & 1) || v->kind == DUDA_VALUE_NULL)
            continue;
        mk_str value = format_value(u->d, v);
        if (!value.p)
            return report_problem(u, "expected a string, a number or a boolean for the parameter",
                                  mk_str_from_c(u->params[i].name));
        mk_buf_add_char(&u->out, sep);
        mk_url_escape_component(&u->out, mk_str_from_c(u->params[i].name));
        mk_buf_add_char(&u->out, '=');
        mk_url_escape_component(&u->out, value);
        sep = '&';
    }
    return true;
}

mk_str duda_url_for(struct duda_ctx *d, const char *name, struct duda_value params)
{
    struct url_builder u = {.d = d, .name = name, .out = mk_buf_growing(URL_MAX)};
    if (params.kind == DUDA_VALUE_MAP) {
        u.params = params.of.map;
        u.n = params.n;
    }
    const struct duda_route_entry *entry = find_route(&u);
    bool good =
        entry && (u.n <= PARAMS_MAX || report_problem(&u, "there are more than 64 parameters", MK_STR_NULL));
    if (good)
        mk_url_escape(&u.out, duda_url_mount_prefix(d));
    good = good && add_path(&u, entry->pattern) && add_query(&u);
    if (good && u.out.failed)
        (void)report_problem(&u, "the URL is too long, or memory is exhausted", MK_STR_NULL);
    mk_str url = good && !u.out.failed ? duda_strdup(d, mk_buf_str(&u.out)) : MK_STR_NULL;
    mk_buf_free(&u.out);
    return url;
}
