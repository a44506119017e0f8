/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/openapi.h"

#include "doc/json_schema.h"
#include "doc/openapi_body.h"
#include "doc/openapi_security.h"

#include <ctype.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <string.h>

enum { METHODS_MAX = 8, IDS_MAX = 4096 };

/* Handlers whose names are used as operation IDs. */
struct operation_ids {
    const char *handlers[IDS_MAX];
    size_t n;
};

/* Writes routes grouped by path: a path is an object with a member for each method. */
struct openapi_writer {
    struct mk_json_writer *json;
    char done[METHODS_MAX][16]; /* methods already written for the path */
    const char *pattern;
    size_t n; /* number of methods in `done` */
    struct dev_json_schemas *named;
    struct operation_ids *operation_ids;
    struct dev_security_schemes *security;
    size_t n_params;
};

/* Appends a path such as "/users/{id}". */
static void append_openapi_path(struct mk_buf *path, const char *pattern)
{
    mk_str rest = mk_str_from_c(pattern), text;
    struct dev_param p;
    while (dev_introspect_next_segment(&rest, &text, &p)) {
        mk_buf_add_char(path, '/');
        if (p.name.p)
            mk_buf_addf(path, "{%.*s}", MK_STR_ARG(p.name));
        else
            mk_buf_add(path, text);
    }
    if (path->len == 0)
        mk_buf_add_char(path, '/');
}

/* Groups of routes become tags, which are named after the paths of the groups, unless the routes have tags of
 * their own. */
static mk_str group_tag(const struct dev_route *r)
{
    return r->group_len ? mk_str_of(r->pattern, r->group_len) : MK_STR("/");
}

static void begin_param(struct openapi_writer *w, mk_str name, const char *in, bool required)
{
    if (w->n_params++ == 0)
        mk_json_begin_array(mk_json_key(w->json, "parameters"));
    mk_json_begin_object(w->json);
    mk_json_string(mk_json_key(w->json, "name"), name);
    mk_json_cstr(mk_json_key(w->json, "in"), in);
    mk_json_bool(mk_json_key(w->json, "required"), required);
    mk_json_key(w->json, "schema");
}

static void write_schema_params(struct openapi_writer *w, const struct duda_schema *schema, const char *in)
{
    for (size_t i = 0; schema && i < schema->n; i++) {
        const struct duda_schema_field *field = duda_schema_field_at(schema, i);
        begin_param(w, mk_str_from_c(duda_schema_field_name(field)), in, !field->optional);
        dev_json_schema_write_field(w->json, field);
        mk_json_end_object(w->json);
    }
}

static void write_params(struct openapi_writer *w, const struct dev_route *r)
{
    mk_str rest = mk_str_from_c(r->pattern), text;
    struct dev_param p;
    w->n_params = 0;
    while (dev_introspect_next_segment(&rest, &text, &p)) {
        if (!p.name.p)
            continue;
        begin_param(w, p.name, "path", true);
        dev_json_schema_write_param_type(w->json, p.type);
        mk_json_end_object(w->json);
    }
    write_schema_params(w, r->line->query, "query");
    write_schema_params(w, r->line->headers, "header");
    if (w->n_params)
        mk_json_end_array(w->json);
}

/* ---- Operations ---- */

static void append_id_chars(struct mk_buf *id, mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        mk_buf_add_char(id, isalnum((unsigned char)text.p[i]) ? text.p[i] : '_');
}

/* Operation IDs are unique. The first route of a handler gets the handler's name, so that routes added
 * elsewhere do not change it; further routes of the handler append method and path. */
static void write_operation_id(struct mk_buf *id, struct operation_ids *operation_ids,
                               const struct dev_route *r, const char *method)
{
    bool is_first = true;
    for (size_t i = 0; i < operation_ids->n && is_first; i++)
        is_first = strcmp(operation_ids->handlers[i], r->line->name) != 0;
    mk_buf_add(id, mk_str_from_c(r->line->name));
    if (is_first && operation_ids->n < MK_LEN(operation_ids->handlers))
        operation_ids->handlers[operation_ids->n++] = r->line->name;
    if (is_first)
        return;
    mk_buf_addf(id, "-%s", method); /* C identifiers contain no `-` */
    mk_str rest = mk_str_from_c(r->pattern), text;
    struct dev_param p;
    while (dev_introspect_next_segment(&rest, &text, &p)) {
        mk_buf_add(id, p.name.p ? MK_STR("-.") : MK_STR("-"));
        append_id_chars(id, p.name.p ? p.name : text);
    }
}

/* Takes the next tag off a list such as "orders, admin". Returns an empty string if there are no more. */
static mk_str next_tag(mk_str *tags)
{
    mk_str tag = MK_STR("");
    while (tags->p && tag.len == 0)
        tag = mk_str_trim(mk_str_cut(tags, ','));
    return tag;
}

static bool has_own_tags(const struct dev_route *r)
{
    mk_str tags = mk_str_from_c(r->line->tags ? r->line->tags : "");
    return next_tag(&tags).len > 0;
}

static void write_operation_tags(struct mk_json_writer *json, const struct dev_route *r)
{
    mk_str tags = mk_str_from_c(r->line->tags ? r->line->tags : ""), tag;
    if (!has_own_tags(r) && !r->group)
        return;
    mk_json_begin_array(mk_json_key(json, "tags"));
    while ((tag = next_tag(&tags)).len)
        mk_json_string(json, tag);
    if (!has_own_tags(r))
        mk_json_string(json, group_tag(r));
    mk_json_end_array(json);
}

static void write_operation(struct openapi_writer *w, const struct dev_route *r, const char *method)
{
    struct mk_json_writer *json = w->json;
    struct mk_buf id = mk_buf_growing(512);
    write_operation_id(&id, w->operation_ids, r, method);
    mk_json_begin_object(mk_json_key(json, method));
    mk_json_string(mk_json_key(json, "operationId"), mk_buf_str(&id));
    mk_json_cstr(mk_json_key(json, "summary"), r->line->summary ? r->line->summary : "");
    if (*r->host) {
        mk_buf_clear(&id);
        mk_buf_addf(&id, "For the host %s.", r->host);
        mk_json_string(mk_json_key(json, "description"), mk_buf_str(&id));
    }
    write_operation_tags(json, r);
    write_params(w, r);
    dev_openapi_write_security(json, w->security, r->security);
    dev_openapi_write_request_body(json, w->named, r->line, method);
    dev_openapi_write_responses(json, w->named, r);
    mk_json_end_object(json);
    mk_buf_free(&id);
}

static void add_method(struct openapi_writer *w, const struct dev_route *r, mk_str word)
{
    static const char *const known = " get put post delete options head patch trace ";
    char method[16], spaced[18];
    size_t n = 0;
    for (; n < word.len && n < sizeof method - 1; n++)
        method[n] = (char)tolower((unsigned char)word.p[n]);
    method[n] = '\0';
    snprintf(spaced, sizeof spaced, " %.14s ", method);
    if (!strstr(known, spaced) || w->n == METHODS_MAX)
        return; /* OpenAPI cannot express other methods */
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->done[i], method) == 0)
            return; /* the same operation on another host */
    memcpy(w->done[w->n++], method, n + 1);
    write_operation(w, r, method);
}

static void add_route(struct openapi_writer *w, const struct dev_route *r)
{
    mk_str methods = mk_str_from_c(r->line->method);
    if (mk_str_eq(methods, MK_STR("*")))
        methods = MK_STR("GET,POST");
    while (methods.p)
        add_method(w, r, mk_str_trim(mk_str_cut(&methods, ',')));
}

/* ---- Paths ---- */

static bool is_same_path(const char *a, const char *b)
{
    char buf[2][DEV_PATTERN_MAX];
    struct mk_buf path_a = mk_buf_fixed(buf[0], sizeof buf[0]), path_b = mk_buf_fixed(buf[1], sizeof buf[1]);
    append_openapi_path(&path_a, a);
    append_openapi_path(&path_b, b);
    return mk_str_eq(mk_buf_str(&path_a), mk_buf_str(&path_b));
}

static void add_route_if_same_path(const struct dev_route *r, void *ctx)
{
    struct openapi_writer *w = ctx;
    if (!r->line->hidden && is_same_path(r->pattern, w->pattern))
        add_route(w, r);
}

struct path_writer {
    struct mk_json_writer *json;
    const struct dev_introspection *d;
    size_t at;
    struct dev_json_schemas *named;
    struct operation_ids *operation_ids;
    struct dev_security_schemes *security;
};

struct earlier_path {
    const char *pattern;
    size_t left;
    bool found;
};

static void find_earlier_path(const struct dev_route *r, void *ctx)
{
    struct earlier_path *b = ctx;
    if (b->left) {
        b->left--;
        b->found = b->found || (!r->line->hidden && is_same_path(r->pattern, b->pattern));
    }
}

static void write_path_once(const struct dev_route *r, void *ctx)
{
    struct path_writer *f = ctx;
    struct earlier_path earlier_path = {.pattern = r->pattern, .left = f->at++};
    dev_introspect_each_route(f->d, find_earlier_path, &earlier_path);
    struct openapi_writer w = {.json = f->json,
                               .pattern = r->pattern,
                               .named = f->named,
                               .operation_ids = f->operation_ids,
                               .security = f->security};
    char buf[DEV_PATTERN_MAX];
    struct mk_buf path = mk_buf_fixed(buf, sizeof buf);
    if (earlier_path.found || r->line->hidden)
        return;
    append_openapi_path(&path, r->pattern);
    mk_json_newline(f->json);
    mk_json_begin_object(mk_json_key_str(f->json, mk_buf_str(&path)));
    dev_introspect_each_route(f->d, add_route_if_same_path, &w);
    mk_json_end_object(f->json);
}

/* ---- The document ---- */

struct tags {
    struct mk_json_writer *json;
    size_t from; /* position of the tags in the document */
    size_t n;
};

static bool is_tag_written(const struct tags *t, mk_str name)
{
    char buf[2 * DEV_PATTERN_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&text);
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, "name"), name);
    mk_buf_add_char(&text, ',');
    mk_str written = mk_str_skip(mk_buf_str(t->json->out), t->from);
    return memmem(written.p, written.len, text.p, text.len);
}

/* Writes a tag unless it is already in the document. */
static void write_tag_once(struct tags *t, mk_str name, const char *description)
{
    if (is_tag_written(t, name))
        return;
    if (t->n++ == 0) {
        mk_json_newline(t->json);
        mk_json_begin_array(mk_json_key(t->json, "tags"));
    }
    mk_json_begin_object(t->json);
    mk_json_string(mk_json_key(t->json, "name"), name);
    mk_json_cstr(mk_json_key(t->json, "description"), description ? description : "");
    mk_json_end_object(t->json);
}

static void write_tags_of_route(const struct dev_route *r, void *ctx)
{
    struct tags *t = ctx;
    if (r->line->hidden)
        return;
    mk_str tags = mk_str_from_c(r->line->tags ? r->line->tags : ""), tag;
    while ((tag = next_tag(&tags)).len)
        write_tag_once(t, tag, NULL);
    if (r->group && !has_own_tags(r))
        write_tag_once(t, group_tag(r), r->group->summary);
}

static void write_tags(const struct dev_introspection *d, struct mk_json_writer *w)
{
    struct tags tags = {.json = w, .from = w->out->len};
    dev_introspect_each_route(d, write_tags_of_route, &tags);
    if (tags.n)
        mk_json_end_array(w);
}

static void write_components(const struct path_writer *f)
{
    struct mk_json_writer *w = f->json;
    mk_json_newline(w);
    mk_json_begin_object(mk_json_key(w, "components"));
    mk_json_begin_object(mk_json_key(w, "schemas"));
    dev_openapi_write_problem_schema(w);
    dev_json_schema_write_components(w, f->named);
    mk_json_end_object(w);
    dev_openapi_write_security_schemes(w, f->security, f->d->service->name);
    mk_json_end_object(w);
}

static void write_info(struct mk_json_writer *w, const struct duda_service *service)
{
    mk_json_begin_object(mk_json_key(w, "info"));
    mk_json_cstr(mk_json_key(w, "title"), service->title ? service->title : service->name);
    mk_json_cstr(mk_json_key(w, "version"), service->version ? service->version : "1");
    if (service->description)
        mk_json_cstr(mk_json_key(w, "description"), service->description);
    mk_json_end_object(w);
}

void dev_openapi_write(const struct dev_introspection *d, struct mk_buf *out)
{
    struct dev_json_schemas named = {.n = 0};
    struct dev_security_schemes security = {.n = 0};
    struct operation_ids *operation_ids = mk_mem_zalloc(1, sizeof *operation_ids);
    struct mk_json_writer w = mk_json_writer_to(out);
    struct path_writer f = {
        .json = &w, .d = d, .named = &named, .operation_ids = operation_ids, .security = &security};
    if (!operation_ids)
        return;
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "openapi"), "3.1.0");
    write_info(&w, d->service);
    mk_json_begin_object(mk_json_key(&w, "paths"));
    dev_introspect_each_route(d, write_path_once, &f);
    mk_buf_add_char(out, '\n');
    mk_json_end_object(&w);
    write_tags(d, &w);
    write_components(&f);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
    mk_mem_free(operation_ids);
}
