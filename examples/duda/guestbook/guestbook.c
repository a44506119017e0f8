/* SPDX-License-Identifier: Apache-2.0 */
/* Forms and templates: a guestbook with validated entries, protected against cross-site request forgery. */
#define DUDA_USE "duda-kv"
#include <duda.h>
#include <duda/kv.h>
#include <errno.h>

enum { SHOWN_MAX = 50 };

struct entry {
    mk_str name, text;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct entry, name, .min_length = 1, .max_length = 40),
    DUDA_STRING(struct entry, text, .min_length = 1, .max_length = 1000),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct entry, members, .allow_unknown = true);

struct listing {
    struct duda_ctx *d;
    struct entry entries[SHOWN_MAX];
    size_t n;
};

static bool add(void *ctx, mk_str key, mk_str value)
{
    struct listing *l = ctx;
    mk_str text = duda_strdup(l->d, value);
    (void)key;
    l->entries[l->n].name = mk_str_cut(&text, '\n');
    l->entries[l->n++].text = text;
    return l->n < SHOWN_MAX;
}

/* Lists the newest entries first (keys count down). */
static int show_with(struct duda_ctx *d, const struct entry *form)
{
    struct listing *l = duda_alloc(d, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->d = d;
    l->n = 0;
    int e = duda_kv_scan(d, duda_kv_find(d, NULL), MK_STR("entry/"), MK_STR_NULL, add, l);
    const struct duda_entry page[] = {
        {"form", duda_value_struct(&schema, form)},
        {"entries", duda_value_structs(&schema, l->entries, l->n)},
    };
    return e ? e : duda_render(d, "book.html", duda_value_map(page, MK_LEN(page)));
}

static int show(struct duda_ctx *d)
{
    return show_with(d, &(struct entry){MK_STR(""), MK_STR("")});
}

static int store(struct duda_ctx *d, const struct entry *entry)
{
    struct duda_kv *kv = duda_kv_find(d, NULL);
    int64_t n = 0;
    int e = duda_kv_incr(d, kv, MK_STR("count"), 1, 0, &n);
    mk_str key = duda_sprintf(d, "entry/%019lld", (long long)(INT64_MAX - n));
    mk_str value = duda_sprintf(d, "%.*s\n%.*s", MK_STR_ARG(entry->name), MK_STR_ARG(entry->text));
    return e ? e : duda_kv_set(d, kv, key, value, 0);
}

static int write_entry(struct duda_ctx *d)
{
    struct entry entry = {MK_STR(""), MK_STR("")};
    struct duda_validation_errors errors;
    int e = duda_bind_form(d, &schema, &entry, &errors);
    if (e == -EINVAL) {
        e = show_with(d, &entry);
        return e ? e : duda_status(d, 422);
    }
    if (!e)
        e = store(d, &entry);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

DUDA_SERVICE(guestbook, DUDA_ASSETS("/static"), DUDA_BEFORE(duda_csrf_check),
             DUDA_GET("/", show, "The book."), DUDA_POST("/", write_entry, "Writes an entry."));
