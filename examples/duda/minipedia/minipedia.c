/* SPDX-License-Identifier: Apache-2.0 */
/* A small encyclopedia. Minipedia was the sample of Duda I/O, whose author wished for coroutines, a key-value
 * store and non-blocking disk access; this version uses all three. The original also computed Fibonacci
 * numbers in the event loop, which blocked all other clients; this one computes them in a thread. */
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/kv.h>
#include <errno.h>

enum { LISTED_MAX = 200, PARAGRAPHS_MAX = 200, TEXT_MAX = 64 * 1024, FIBONACCI_MAX = 40 };

struct listing {
    struct duda_ctx *d;
    struct duda_value names[LISTED_MAX];
    size_t n;
};

static bool add_name(void *ctx, mk_str key, mk_str value)
{
    struct listing *l = ctx;
    (void)value;
    l->names[l->n++] = duda_value_text(duda_strdup(l->d, mk_str_skip(key, 5)));
    return l->n < LISTED_MAX;
}

static int list(struct duda_ctx *d)
{
    struct listing *l = duda_alloc(d, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->d = d;
    l->n = 0;
    int e = duda_kv_scan(d, duda_kv_find(d, NULL), MK_STR("page/"), MK_STR_NULL, add_name, l);
    const struct duda_entry page[] = {{"title", duda_value_cstr("minipedia")},
                                      {"articles", duda_value_list(l->names, l->n)}};
    return e ? e : duda_render(d, "list.html", duda_value_map(page, MK_LEN(page)));
}

static mk_str key_of(struct duda_ctx *d)
{
    return duda_sprintf(d, "page/%.*s", MK_STR_ARG(duda_param(d, "name")));
}

static int show(struct duda_ctx *d)
{
    struct duda_value paragraphs[PARAGRAPHS_MAX];
    size_t n = 0;
    mk_str text = MK_STR("");
    int e = duda_kv_get(d, duda_kv_find(d, NULL), key_of(d), &text);
    if (e && e != -ENOENT)
        return e;
    for (mk_str rest = text; rest.len && n < PARAGRAPHS_MAX;) {
        mk_str line = mk_str_trim(mk_str_cut(&rest, '\n'));
        if (line.len)
            paragraphs[n++] = duda_value_text(line);
    }
    const struct duda_entry page[] = {{"title", duda_value_text(duda_param(d, "name"))},
                                      {"text", duda_value_text(text)},
                                      {"paragraphs", duda_value_list(paragraphs, n)}};
    int result = duda_render(d, "article.html", duda_value_map(page, MK_LEN(page)));
    return result || !e ? result : duda_status(d, 404);
}

static int save(struct duda_ctx *d)
{
    mk_str text = duda_form(d, "text");
    if (!text.p || text.len > TEXT_MAX)
        return duda_problem(d, 422, "an article has up to %d bytes of text", TEXT_MAX);
    int e = text.len ? duda_kv_set(d, duda_kv_find(d, NULL), key_of(d), text, 0)
                     : duda_kv_delete(d, duda_kv_find(d, NULL), key_of(d));
    if (e && e != -ENOENT)
        return e;
    struct duda_value name = duda_value_members({"name", duda_value_text(duda_param(d, "name"))});
    return duda_redirect(d, 303, duda_url_for(d, "show", name));
}

static unsigned long fibonacci_of(unsigned n)
{
    return n < 2 ? n : fibonacci_of(n - 1) + fibonacci_of(n - 2);
}

static int compute(void *job)
{
    unsigned long *n = job;
    *n = fibonacci_of((unsigned)*n);
    return 0;
}

static int fibonacci(struct duda_ctx *d)
{
    int64_t index;
    if (!duda_param_int(d, "n", &index) || index > FIBONACCI_MAX)
        return duda_problem(d, 400, "up to %d", FIBONACCI_MAX);
    unsigned long n = (unsigned long)index;
    int e = duda_offload(d, NULL, compute, &n, sizeof n);
    return e ? e : duda_printf(d, "%lu\n", n);
}

DUDA_SERVICE(minipedia, DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", list, "All articles."),
             DUDA_GET("/wiki/:name<slug>", show, "An article."),
             DUDA_POST("/wiki/:name<slug>", save, "Saves an article; an empty one is removed."),
             DUDA_GET("/fibonacci/:n<uint>", fibonacci, "Computes, in a thread.", .deadline_ms = 10000));
