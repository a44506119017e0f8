/* SPDX-License-Identifier: Apache-2.0 */
#include "openapi.h"

#include <ctype.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>

enum { METHODS_MAX = 8 };

/* The routes by path: a path is an object, with a member for each method. */
struct paths {
    struct mk_buf *out;
    char done[METHODS_MAX][16]; /* methods that the path has */
    const char *pattern;
    size_t n, at; /* methods; the number of the route */
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

static const char *schema_of(mk_str type)
{
    static const char *const schemas[][2] = {
        {"int", "{\"type\":\"integer\",\"format\":\"int64\"}"},
        {"uint", "{\"type\":\"integer\",\"minimum\":0}"},
        {"number", "{\"type\":\"number\"}"},
        {"uuid", "{\"type\":\"string\",\"format\":\"uuid\"}"},
        {"date", "{\"type\":\"string\",\"format\":\"date\"}"},
        {"hex", "{\"type\":\"string\",\"pattern\":\"^[0-9A-Fa-f]+$\"}"},
        {"alpha", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z]+$\"}"},
        {"word", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_]+$\"}"},
        {"slug", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-]+$\"}"},
    };
    for (size_t i = 0; i < MK_LEN(schemas); i++)
        if (mk_str_eq(type, mk_str_from_c(schemas[i][0])))
            return schemas[i][1];
    return "{\"type\":\"string\"}";
}

static void write_params(struct mk_buf *out, const char *pattern)
{
    mk_str rest = mk_str_from_c(pattern), text;
    struct dev_param p;
    bool any = false;
    while (dev_describe_segment(&rest, &text, &p)) {
        if (!p.name.p)
            continue;
        mk_buf_add(out, any ? MK_STR(",") : MK_STR(",\"parameters\":["));
        mk_buf_add(out, MK_STR("{\"name\":"));
        mk_json_string(out, p.name);
        mk_buf_addf(out, ",\"in\":\"path\",\"required\":true,\"schema\":%s}", schema_of(p.type));
        any = true;
    }
    if (any)
        mk_buf_add(out, MK_STR("]"));
}

/* Names of operations are unique, and handlers may answer several routes. */
static void write_operation(struct paths *w, const struct dev_route *r, const char *method)
{
    const char *doc = r->line->doc ? r->line->doc : "";
    struct mk_buf id = mk_buf_growing(512);
    mk_buf_addf(&id, "%s_%s_%zu", r->line->name, method, w->at);
    mk_buf_addf(w->out, "%s\"%s\":{\"operationId\":", w->n > 1 ? "," : "", method);
    mk_json_string(w->out, mk_buf_str(&id));
    mk_buf_add(w->out, MK_STR(",\"summary\":"));
    mk_json_string(w->out, mk_str_from_c(doc));
    write_params(w->out, r->pattern);
    if (strcmp(method, "post") == 0 || strcmp(method, "put") == 0 || strcmp(method, "patch") == 0)
        mk_buf_add(w->out, MK_STR(",\"requestBody\":{\"content\":{\"application/json\":{},"
                                  "\"application/x-www-form-urlencoded\":{},\"text/plain\":{}}}"));
    mk_buf_add(w->out, MK_STR(",\"responses\":{\"default\":{\"description\":\"What the handler says.\"}}}"));
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
    w->at++;
    if (is_same_path(r->pattern, w->pattern))
        add_route(w, r);
}

struct firsts {
    struct mk_buf *out;
    const struct dev_description *d;
    size_t at, n;
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
    struct paths w = {.out = f->out, .pattern = r->pattern};
    if (before.found)
        return;
    mk_buf_add(f->out, f->n++ ? MK_STR(",\n") : MK_STR("\n"));
    write_path(f->out, r->pattern);
    mk_buf_add(f->out, MK_STR(":{"));
    dev_describe_each(f->d, each_of_path, &w);
    mk_buf_add_char(f->out, '}');
}

void dev_openapi_write(const struct dev_description *d, struct mk_buf *out)
{
    struct firsts f = {.out = out, .d = d};
    mk_buf_add(out, MK_STR("{\"openapi\":\"3.1.0\",\"info\":{\"title\":"));
    mk_json_string(out, mk_str_from_c(d->service->name));
    mk_buf_add(out, MK_STR(",\"version\":\"1\"},\"paths\":{"));
    dev_describe_each(d, each_first, &f);
    mk_buf_add(out, MK_STR("\n}}\n"));
}
