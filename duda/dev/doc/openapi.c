/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/openapi.h"

#include "doc/schema.h"
#include "status.h"

#include <ctype.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

enum { METHODS_MAX = 8, STATUSES_MAX = 24, IDS_MAX = 4096 };

/* Handlers that operations are called like. */
struct ids {
    const char *handlers[IDS_MAX];
    size_t n;
};

/* The routes by path: a path is an object, with a member for each method. */
struct paths {
    struct mk_buf *out;
    char done[METHODS_MAX][16]; /* methods that the path has */
    const char *pattern;
    size_t n; /* methods */
    struct dev_schemas *named;
    struct ids *ids;
    size_t n_params, n_statuses;
    unsigned statuses[STATUSES_MAX]; /* that the operation has */
};

/* "/users/{id}" */
static void write_path(struct mk_buf *out, const char *pattern)
{
    mk_str rest = mk_str_from_c(pattern), text;
    struct dev_param p;
    char room[DEV_PATTERN_MAX];
    struct mk_buf path = mk_buf_fixed(room, sizeof room);
    while (dev_describe_segment(&rest, &text, &p)) {
        mk_buf_add_char(&path, '/');
        if (p.name.p)
            mk_buf_addf(&path, "{%.*s}", MK_STR_ARG(p.name));
        else
            mk_buf_add(&path, text);
    }
    mk_json_string(out, path.len ? mk_buf_str(&path) : MK_STR("/"));
}

/* Groups are tags, with their paths as names. */
static void write_tag(struct mk_buf *out, const struct dev_route *r)
{
    mk_json_string(out, r->group_len ? mk_str_of(r->pattern, r->group_len) : MK_STR("/"));
}

static void begin_param(struct paths *w, mk_str name, const char *in, bool required)
{
    mk_buf_add(w->out, w->n_params++ ? MK_STR(",{\"name\":") : MK_STR(",\"parameters\":[{\"name\":"));
    mk_json_string(w->out, name);
    mk_buf_addf(w->out, ",\"in\":\"%s\",\"required\":%s,\"schema\":", in, required ? "true" : "false");
}

static void write_params(struct paths *w, const struct dev_route *r)
{
    mk_str rest = mk_str_from_c(r->pattern), text;
    const struct duda_shape *query = r->line->query;
    struct dev_param p;
    w->n_params = 0;
    while (dev_describe_segment(&rest, &text, &p)) {
        if (!p.name.p)
            continue;
        begin_param(w, p.name, "path", true);
        mk_buf_addf(w->out, "%s}", dev_schema_of_type(p.type));
    }
    for (size_t i = 0; query && i < query->n; i++) {
        begin_param(w, mk_str_from_c(duda_member_name(&query->members[i])), "query",
                    !query->members[i].optional);
        dev_schema_write_member(w->out, &query->members[i]);
        mk_buf_add_char(w->out, '}');
    }
    if (w->n_params)
        mk_buf_add_char(w->out, ']');
}

static void write_media(struct paths *w, const char *type, const struct duda_shape *shape, bool is_list)
{
    mk_buf_addf(w->out, "\"%s\":{\"schema\":", type);
    dev_schema_write(w->out, w->named, shape, is_list);
    mk_buf_add_char(w->out, '}');
}

/* Where the route does not say what it takes, clients choose. */
static void write_content(struct paths *w, const struct duda_route *line, const char *method)
{
    bool has = strcmp(method, "post") == 0 || strcmp(method, "put") == 0 || strcmp(method, "patch") == 0;
    if (!has && !line->takes && !line->form)
        return;
    mk_buf_add(w->out, MK_STR(",\"requestBody\":{\"content\":{"));
    if (line->takes)
        write_media(w, "application/json", line->takes, line->takes_list);
    if (line->form) {
        if (line->takes)
            mk_buf_add_char(w->out, ',');
        write_media(w, "application/x-www-form-urlencoded", line->form, false);
        mk_buf_add_char(w->out, ',');
        write_media(w, "multipart/form-data", line->form, false);
    }
    if (!line->takes && !line->form)
        mk_buf_add(w->out, MK_STR("\"application/json\":{},\"application/x-www-form-urlencoded\":{},"
                                  "\"multipart/form-data\":{},\"text/plain\":{}"));
    mk_buf_add(w->out, MK_STR("}}"));
}

/* ---- Responses ---- */

static void write_response(struct paths *w, const struct duda_route *line, unsigned status, bool is_problem)
{
    for (size_t i = 0; i < w->n_statuses; i++)
        if (w->statuses[i] == status)
            return;
    if (w->n_statuses == STATUSES_MAX || status < 100 || status > 599)
        return;
    mk_buf_addf(w->out, "%s\"%u\":{\"description\":\"%s\"", w->n_statuses ? "," : "", status,
                dev_status_phrase(status));
    if (w->n_statuses++ == 0 && line->gives) {
        mk_buf_add(w->out, MK_STR(",\"content\":{"));
        write_media(w, "application/json", line->gives, line->gives_list);
        mk_buf_add_char(w->out, '}');
    } else if (is_problem) {
        mk_buf_add(w->out, MK_STR(",\"content\":{\"application/problem+json\":{\"schema\":"
                                  "{\"$ref\":\"#/components/schemas/Problem\"}}}"));
    }
    mk_buf_add_char(w->out, '}');
    w->statuses[w->n_statuses - 1] = status;
}

static void write_responses(struct paths *w, const struct duda_route *line)
{
    mk_str rest = mk_str_from_c(line->answers ? line->answers : line->gives ? "200" : "");
    const unsigned of_query[] = {400}, of_json[] = {400, 413, 415, 422}, of_form[] = {400, 413, 415};
    uint64_t status;
    w->n_statuses = 0;
    mk_buf_add(w->out, MK_STR(",\"responses\":{"));
    while (rest.len) {
        mk_str word = mk_str_word(&rest);
        if (mk_num_parse(word, &status))
            write_response(w, line, (unsigned)status, false);
    }
    if (w->n_statuses == 0)
        mk_buf_add(w->out, MK_STR("\"default\":{\"description\":\"What the handler says.\"}"));
    bool has_default = w->n_statuses == 0;
    for (size_t i = 0; !has_default && line->query && i < MK_LEN(of_query); i++)
        write_response(w, line, of_query[i], true);
    for (size_t i = 0; !has_default && line->takes && i < MK_LEN(of_json); i++)
        write_response(w, line, of_json[i], true);
    for (size_t i = 0; !has_default && line->form && i < MK_LEN(of_form); i++)
        write_response(w, line, of_form[i], false);
    mk_buf_add_char(w->out, '}');
}

/* ---- Operations ---- */

/* Names of operations are unique. The first route of a handler is called like it, so that routes which are
 * added elsewhere change no names; its others have their method and path behind it. */
static void write_id(struct mk_buf *id, struct ids *ids, const struct dev_route *r, const char *method)
{
    bool is_first = true;
    for (size_t i = 0; i < ids->n && is_first; i++)
        is_first = strcmp(ids->handlers[i], r->line->name) != 0;
    mk_buf_add(id, mk_str_from_c(r->line->name));
    if (is_first && ids->n < MK_LEN(ids->handlers))
        ids->handlers[ids->n++] = r->line->name;
    if (is_first)
        return;
    mk_buf_addf(id, "-%s", method); /* no name of C has a `-` */
    for (const char *at = r->pattern; *at; at++)
        mk_buf_add_char(id, *at == '/'                    ? '-'
                            : *at == ':' || *at == '*'    ? '.'
                            : isalnum((unsigned char)*at) ? *at
                                                          : '_');
}

static void write_operation(struct paths *w, const struct dev_route *r, const char *method)
{
    const char *doc = r->line->doc ? r->line->doc : "";
    struct mk_buf id = mk_buf_growing(512);
    write_id(&id, w->ids, r, method);
    mk_buf_addf(w->out, "%s\"%s\":{\"operationId\":", w->n > 1 ? "," : "", method);
    mk_json_string(w->out, mk_buf_str(&id));
    mk_buf_add(w->out, MK_STR(",\"summary\":"));
    mk_json_string(w->out, mk_str_from_c(doc));
    if (*r->host) {
        mk_buf_clear(&id);
        mk_buf_addf(&id, "For the host %s.", r->host);
        mk_buf_add(w->out, MK_STR(",\"description\":"));
        mk_json_string(w->out, mk_buf_str(&id));
    }
    if (r->group) {
        mk_buf_add(w->out, MK_STR(",\"tags\":["));
        write_tag(w->out, r);
        mk_buf_add_char(w->out, ']');
    }
    write_params(w, r);
    write_content(w, r->line, method);
    write_responses(w, r->line);
    mk_buf_add_char(w->out, '}');
    mk_buf_free(&id);
}

static void add_method(struct paths *w, const struct dev_route *r, mk_str word)
{
    static const char *const known = " get put post delete options head patch trace ";
    char method[16], spaced[18];
    size_t n = 0;
    for (; n < word.len && n < sizeof method - 1; n++)
        method[n] = (char)tolower((unsigned char)word.p[n]);
    method[n] = '\0';
    snprintf(spaced, sizeof spaced, " %.14s ", method);
    if (!strstr(known, spaced) || w->n == METHODS_MAX)
        return; /* OpenAPI has no place for others */
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->done[i], method) == 0)
            return; /* the same in another host */
    memcpy(w->done[w->n++], method, n + 1);
    write_operation(w, r, method);
}

static void add_route(struct paths *w, const struct dev_route *r)
{
    mk_str methods = mk_str_from_c(r->line->method);
    if (mk_str_eq(methods, MK_STR("*")))
        methods = MK_STR("GET,POST");
    while (methods.p)
        add_method(w, r, mk_str_trim(mk_str_cut(&methods, ',')));
}

/* ---- One path after the other ---- */

static bool is_same_path(const char *a, const char *b)
{
    char room[2][DEV_PATTERN_MAX];
    struct mk_buf one = mk_buf_fixed(room[0], sizeof room[0]), other = mk_buf_fixed(room[1], sizeof room[1]);
    write_path(&one, a);
    write_path(&other, b);
    return mk_str_eq(mk_buf_str(&one), mk_buf_str(&other));
}

static void each_of_path(const struct dev_route *r, void *ctx)
{
    struct paths *w = ctx;
    if (is_same_path(r->pattern, w->pattern))
        add_route(w, r);
}

struct firsts {
    struct mk_buf *out;
    const struct dev_description *d;
    size_t at, n;
    struct dev_schemas *named;
    struct ids *ids;
};

struct before {
    const char *pattern;
    size_t left;
    bool found;
};

static void look_before(const struct dev_route *r, void *ctx)
{
    struct before *b = ctx;
    if (b->left) {
        b->left--;
        b->found = b->found || is_same_path(r->pattern, b->pattern);
    }
}

static void each_first(const struct dev_route *r, void *ctx)
{
    struct firsts *f = ctx;
    struct before before = {.pattern = r->pattern, .left = f->at++};
    dev_describe_each(f->d, look_before, &before);
    struct paths w = {.out = f->out, .pattern = r->pattern, .named = f->named, .ids = f->ids};
    if (before.found)
        return;
    mk_buf_add(f->out, f->n++ ? MK_STR(",\n") : MK_STR("\n"));
    write_path(f->out, r->pattern);
    mk_buf_add(f->out, MK_STR(":{"));
    dev_describe_each(f->d, each_of_path, &w);
    mk_buf_add_char(f->out, '}');
}

/* ---- The rest ---- */

static const char problem[] =
    ",\n\"components\":{\"schemas\":{\"Problem\":{\"type\":\"object\",\"description\":\"RFC "
    "9457\",\"properties\":{"
    "\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},"
    "\"errors\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"detail\":{\"type\":"
    "\"string\"},"
    "\"pointer\":{\"type\":\"string\"},\"line\":{\"type\":\"integer\"},\"column\":{\"type\":\"integer\"}}}}}"
    "}";

struct tags {
    struct mk_buf *out;
    const struct duda_route *group; /* the last one */
    size_t n;
};

/* Routes of a group come one after the other, but for groups inside of it. */
static void each_tag(const struct dev_route *r, void *ctx)
{
    struct tags *t = ctx;
    struct mk_buf name = mk_buf_growing(2 * DEV_PATTERN_MAX);
    if (!r->group || r->group == t->group)
        return;
    t->group = r->group;
    mk_buf_add(&name, MK_STR("{\"name\":"));
    write_tag(&name, r);
    bool is_known = memmem(t->out->p ? t->out->p : "", t->out->len, name.p ? name.p : "", name.len);
    if (!is_known) {
        mk_buf_add(t->out, t->n++ ? MK_STR(",") : MK_STR(",\n\"tags\":["));
        mk_buf_add(t->out, mk_buf_str(&name));
        mk_buf_add(t->out, MK_STR(",\"description\":"));
        mk_json_string(t->out, mk_str_from_c(r->group->doc ? r->group->doc : ""));
        mk_buf_add_char(t->out, '}');
    }
    mk_buf_free(&name);
}

static void write_tags(const struct dev_description *d, struct mk_buf *out)
{
    struct mk_buf text = mk_buf_growing(1 << 20);
    struct tags tags = {.out = &text};
    dev_describe_each(d, each_tag, &tags);
    mk_buf_add(out, mk_buf_str(&text));
    if (tags.n)
        mk_buf_add_char(out, ']');
    mk_buf_free(&text);
}

void dev_openapi_write(const struct dev_description *d, struct mk_buf *out)
{
    struct dev_schemas named = {.n = 0};
    struct ids *ids = mk_mem_zalloc(1, sizeof *ids);
    struct firsts f = {.out = out, .d = d, .named = &named, .ids = ids};
    if (!ids)
        return;
    mk_buf_add(out, MK_STR("{\"openapi\":\"3.1.0\",\"info\":{\"title\":"));
    mk_json_string(out, mk_str_from_c(d->service->name));
    mk_buf_add(out, MK_STR(",\"version\":\"1\"},\"paths\":{"));
    dev_describe_each(d, each_first, &f);
    mk_buf_add(out, MK_STR("\n}"));
    write_tags(d, out);
    mk_buf_add(out, mk_str_from_c(problem));
    dev_schema_write_named(out, &named);
    mk_buf_add(out, MK_STR("}}}\n"));
    mk_mem_free(ids);
}
