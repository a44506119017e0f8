/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the URLs of routes from their patterns. */
#include "service/url.h"

#include <duda/url.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdio.h>

#include "service/route_table.h"
#include "text/template.h"

#undef duda_url_for /* defined below, not called */

enum { URL_MAX = 8192, NUMBER_SIZE = 32, PARAMS_MAX = 64, PROBLEM_SIZE = 512 };

/* A URL that is being built. */
struct url_builder {
    struct duda_ctx *d;
    const char *caller; /* the function or tag that messages name */
    mk_str name;
    const struct duda_entry *params;
    size_t n;
    bool is_absolute;
    uint64_t used; /* bit set: the parameters that the pattern contains */
    struct mk_buf out;
};

static bool report_problem(struct url_builder *u, const char *problem, mk_str param)
{
    char text[PROBLEM_SIZE];
    snprintf(text, sizeof text, "%s(\"%.*s\"): %s%s%.*s%s", u->caller, MK_STR_ARG(u->name), problem,
             param.p ? " `" : "", MK_STR_ARG(param), param.p ? "`" : "");
    duda_log_handler(u->d, MK_LOG_ERROR, "%s", text);
    (void)duda_reason(u->d, -EINVAL, "%s", text);
    return false;
}

/* ---- The route ---- */

static mk_str name_of_route(const struct duda_route *r)
{
    return mk_str_from_c(r->url_name ? r->url_name : r->name);
}

/* Returns the first route with this name. *other is then a route with the same name and another pattern; NULL:
 * there is none. */
static const struct duda_route_entry *find_named_route(const struct duda_route_table *t, mk_str name,
                                                       const struct duda_route_entry **other)
{
    const struct duda_route_entry *found = NULL, *entry;
    *other = NULL;
    for (size_t i = 0; t && !*other && (entry = duda_route_table_at(t, i)); i++) {
        if (!mk_str_eq(name_of_route(entry->route), name))
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
        *found = find_named_route(u->d->owner ? u->d->owner->entry->table : NULL, u->name, &other);
    if (found && !other)
        return found;
    if (found)
        format_ambiguity(text, found->route, other->route);
    (void)report_problem(u, text, MK_STR_NULL);
    return NULL;
}

/* ---- At load ---- */

static void suggest_route_name(struct mk_config *config, const struct duda_route_table *t, mk_str name)
{
    size_t n = 0;
    while (duda_route_table_at(t, n))
        n++;
    mk_str *names = mk_config_alloc(config, (n + 1) * sizeof *names);
    for (size_t i = 0; names && i < n; i++)
        names[i] = name_of_route(duda_route_table_at(t, i)->route);
    if (names)
        mk_config_suggest(config, name, names, n);
}

void duda_url_check_names(struct mk_config *config, const struct duda_service *service,
                          const struct duda_route_table *t)
{
    for (const struct duda_url_use *const *at = service->url_uses; at < service->url_uses_end; at++) {
        const struct duda_url_use *use = *at;
        const struct duda_route_entry *other, *found;
        char text[PROBLEM_SIZE] = "no route has this name";
        if (!use || !use->name || ((found = find_named_route(t, mk_str_from_c(use->name), &other)) && !other))
            continue;
        if (found)
            format_ambiguity(text, found->route, other->route);
        mk_config_warn(config, NULL, NULL, "%s:%d: duda_url_for(\"%s\"): %s", use->file, use->line, use->name,
                       text);
        if (!found)
            suggest_route_name(config, t, mk_str_from_c(use->name));
    }
}

struct template_check {
    struct mk_config *config;
    const struct duda_route_table *table;
};

static bool is_param_segment(mk_str segment)
{
    return segment.len > 1 && (segment.p[0] == ':' || segment.p[0] == '*');
}

/* Returns the name of `:name`, `:name<int>` or `*name`. */
static mk_str name_of_segment(mk_str segment)
{
    mk_str rest = mk_str_skip(segment, 1);
    return mk_str_cut(&rest, '<');
}

static bool has_param(const struct duda_template_url *url, mk_str name)
{
    for (size_t i = 0; i < url->n_params; i++)
        if (mk_str_eq(mk_str_from_c(url->params[i].name), name))
            return true;
    return false;
}

/* Returns the name of the first parameter of the pattern that the tag lacks; absent: it lacks none. */
static mk_str find_missing_param(const struct duda_template_url *url, mk_str pattern)
{
    while (pattern.p) {
        mk_str segment = mk_str_cut(&pattern, '/');
        if (is_param_segment(segment) && !has_param(url, name_of_segment(segment)))
            return name_of_segment(segment);
    }
    return MK_STR_NULL;
}

static void check_template_url(void *ctx, const struct duda_template_url *url)
{
    struct template_check *check = ctx;
    char text[PROBLEM_SIZE] = "no route has this name", place[PROBLEM_SIZE];
    struct mk_buf at = mk_buf_fixed(place, sizeof place);
    const struct duda_route_entry *other, *found = find_named_route(check->table, url->route, &other);
    mk_str missing = found ? find_missing_param(url, found->pattern) : MK_STR_NULL;
    if (found && !other && !missing.p)
        return;
    if (found && other)
        format_ambiguity(text, found->route, other->route);
    else if (found)
        snprintf(text, sizeof text, "the pattern needs the parameter `%.*s`", MK_STR_ARG(missing));
    duda_template_position(url->tmpl, url->at, &at);
    mk_config_warn(check->config, NULL, NULL, "templates/%.*surl_for \"%.*s\": %s",
                   MK_STR_ARG(mk_buf_str(&at)), MK_STR_ARG(url->route), text);
    if (!found)
        suggest_route_name(check->config, check->table, url->route);
}

void duda_url_check_templates(struct mk_config *config, const struct duda_templates *templates,
                              const struct duda_route_table *t)
{
    struct template_check check = {.config = config, .table = t};
    if (templates)
        duda_templates_visit_urls(templates, check_template_url, &check);
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

int duda_url_append_base(struct duda_ctx *d, bool is_absolute, struct mk_buf *out)
{
    if (!duda_url_has_base(d, is_absolute))
        return -ENOENT;
    if (is_absolute || !d->request)
        mk_buf_add(out, d->owner->entry->public_url);
    mk_url_escape(out, d->request ? duda_url_mount_prefix(d) : d->owner->entry->mount_prefix);
    return 0;
}

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
        if (is_param_segment(segment)) {
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

static bool build_url(struct url_builder *u)
{
    const struct duda_route_entry *entry = find_route(u);
    bool good =
        entry && (u->n <= PARAMS_MAX || report_problem(u, "there are more than 64 parameters", MK_STR_NULL));
    good = good &&
           (duda_url_append_base(u->d, u->is_absolute, &u->out) == 0 ||
            report_problem(u, "PublicUrl of [DUDA] is not set, so there is no absolute URL", MK_STR_NULL));
    good = good && add_path(u, entry->pattern) && add_query(u);
    if (good && u->out.failed)
        (void)report_problem(u, "the URL is too long, or memory is exhausted", MK_STR_NULL);
    return good && !u->out.failed;
}

mk_str duda_url_for(struct duda_ctx *d, const char *name, struct duda_value params)
{
    struct url_builder u = {
        .d = d, .caller = "duda_url_for", .name = mk_str_from_c(name), .out = mk_buf_growing(URL_MAX)};
    if (params.kind == DUDA_VALUE_MAP) {
        u.params = params.of.map;
        u.n = params.n;
    }
    mk_str url = build_url(&u) ? duda_strdup(d, mk_buf_str(&u.out)) : MK_STR_NULL;
    mk_buf_free(&u.out);
    return url;
}

static bool is_path_url(mk_str url)
{
    return mk_str_starts(url, MK_STR("/")) && !mk_str_starts(url, MK_STR("//"));
}

/* Returns the base followed by the path; absent, with an entry in the log, if there is no base. */
static mk_str join_base_and_path(struct duda_ctx *d, const char *caller, int base_error, struct mk_buf *base,
                                 mk_str path)
{
    if (base_error)
        duda_log(d, MK_LOG_ERROR, "%s(): PublicUrl of [DUDA] is not set, so there is no absolute URL",
                 caller);
    mk_buf_add(base, path);
    mk_str url = base_error || base->failed ? MK_STR_NULL : duda_strdup(d, mk_buf_str(base));
    mk_buf_free(base);
    return url;
}

mk_str duda_mount_url(struct duda_ctx *d, mk_str path)
{
    struct mk_buf base = mk_buf_growing(URL_MAX);
    if (!is_path_url(path))
        return path;
    int e = duda_url_append_base(d, false, &base);
    return !e && !base.len ? path : join_base_and_path(d, "duda_mount_url", e, &base, path);
}

mk_str duda_absolute_url(struct duda_ctx *d, mk_str path)
{
    struct mk_buf base = mk_buf_growing(URL_MAX);
    bool has_base = duda_url_has_base(d, true);
    if (!is_path_url(path))
        return path;
    if (has_base)
        mk_buf_add(&base, d->owner->entry->public_url);
    return join_base_and_path(d, "duda_absolute_url", has_base ? 0 : -ENOENT, &base, path);
}

int duda_url_append(struct duda_ctx *d, bool is_absolute, mk_str name, const struct duda_entry *params,
                    size_t n, struct mk_buf *out)
{
    struct url_builder u = {.d = d,
                            .caller = "url_for",
                            .name = name,
                            .params = params,
                            .n = n,
                            .is_absolute = is_absolute,
                            .out = mk_buf_growing(URL_MAX)};
    bool good = build_url(&u);
    if (good)
        mk_buf_add(out, mk_buf_str(&u.out));
    mk_buf_free(&u.out);
    return good ? 0 : -EINVAL;
}
