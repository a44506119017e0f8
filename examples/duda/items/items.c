/* SPDX-License-Identifier: Apache-2.0 */
/* A REST service: JSON items, validated by a schema and stored on disk. */
#define DUDA_USE         "duda-kv"
#define DUDA_API_TITLE   "Items"
#define DUDA_API_VERSION "1.0.0"
#include <duda.h>
#include <duda/kv.h>
#include <errno.h>
#include <monkey/json.h>

enum { SHOWN_MAX = 100, ITEM_MAX = 1024 };

static const char *const states[] = {"new", "sold", NULL};

struct item {
    mk_str name;
    double price;
    unsigned state;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct item, name, .min_length = 1, .max_length = 80),
    DUDA_DOUBLE(struct item, price, DUDA_MINIMUM(0), DUDA_MAXIMUM(1e6)),
    DUDA_ENUM(struct item, state, states, .optional = true),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct item, members);

struct page {
    int64_t after;
};

static const struct duda_schema_field page_fields[] = {
    DUDA_INTEGER(struct page, after, .optional = true, DUDA_MINIMUM(0), DUDA_MAXIMUM(1e9))};
static const struct duda_schema page_schema = DUDA_SCHEMA(struct page, page_fields);

DUDA_COUNTER(created, "created_total", "Items created.");

/* Zero-padded, so that keys sort in numerical order: item/0000000012. */
static mk_str key_of(struct duda_ctx *d, int64_t id)
{
    return duda_sprintf(d, "item/%010lld", (long long)id);
}

static mk_str item_key(struct duda_ctx *d)
{
    int64_t id = 0;
    (void)duda_param_int(d, "id", &id);
    return key_of(d, id);
}

/* Stores an item and sends it as the response. */
static int store(struct duda_ctx *d, mk_str key, const struct item *item)
{
    char buf[ITEM_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct duda_value value = duda_value_struct(&schema, item);
    duda_json_write(&text, &value);
    int e = text.failed ? -EMSGSIZE : duda_kv_set(d, duda_kv_find(d, NULL), key, mk_buf_str(&text), 0);
    return e ? e : duda_send_json(d, value);
}

static int create(struct duda_ctx *d)
{
    struct item item = {.state = 0};
    int64_t id = 0;
    int e = duda_bind_json(d, &schema, &item, NULL);
    if (!e)
        e = duda_kv_incr(d, duda_kv_find(d, NULL), MK_STR("last"), 1, 0, &id);
    if (!e)
        e = store(d, key_of(d, id), &item);
    if (!e)
        e = duda_header_set(d, "Location", duda_sprintf(d, "/items/%lld", (long long)id));
    if (!e)
        duda_counter_add(d, &created, 1);
    return e ? e : 201;
}

static int show(struct duda_ctx *d)
{
    mk_str value;
    int e = duda_kv_get(d, duda_kv_find(d, NULL), item_key(d), &value);
    if (e == -ENOENT)
        return duda_problem(d, 404, "there is no such item");
    if (!e)
        e = duda_content_type(d, MK_STR("application/json"));
    return e ? e : duda_write(d, value);
}

static int replace(struct duda_ctx *d)
{
    struct item item = {.state = 0};
    mk_str value;
    int e = duda_kv_get(d, duda_kv_find(d, NULL), item_key(d), &value);
    if (e == -ENOENT)
        return duda_problem(d, 404, "there is no such item");
    if (!e)
        e = duda_bind_json(d, &schema, &item, NULL);
    return e ? e : store(d, item_key(d), &item);
}

static int drop(struct duda_ctx *d)
{
    int e = duda_kv_delete(d, duda_kv_find(d, NULL), item_key(d));
    return e == -ENOENT ? duda_problem(d, 404, "there is no such item") : e;
}

struct listing {
    struct duda_ctx *d;
    unsigned n;
};

static bool add(void *ctx, mk_str key, mk_str value)
{
    struct listing *l = ctx;
    uint64_t id = 0;
    char buf[ITEM_MAX + 64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = {.out = &text, .comma = l->n > 0};
    (void)mk_num_parse(mk_str_skip(key, 5), &id);
    mk_json_begin_object(&w);
    mk_json_uint(mk_json_key(&w, "id"), id);
    mk_json_raw(mk_json_key(&w, "item"), value);
    mk_json_end_object(&w);
    return !text.failed && duda_write(l->d, mk_buf_str(&text)) == 0 && ++l->n < SHOWN_MAX;
}

/* Lists one page of items: ?after=ID */
static int list(struct duda_ctx *d)
{
    struct listing l = {.d = d};
    struct page page = {0};
    int e = duda_bind_query(d, &page_schema, &page);
    if (e)
        return e;
    (void)duda_content_type(d, MK_STR("application/json"));
    (void)duda_puts(d, "[");
    e = duda_kv_scan(d, duda_kv_find(d, NULL), MK_STR("item/"), key_of(d, page.after), add, &l);
    return e ? e : duda_puts(d, "]\n");
}

DUDA_SERVICE(items,
             DUDA_GET("/items", list, "Lists up to 100 items, from ?after=ID on.", .query = &page_schema),
             DUDA_POST("/items", create, "Creates an item.", .request_body = &schema,
                       .response_body = &schema, .responses = "201"),
             DUDA_GET("/items/:id<uint>", show, "Shows an item.", .response_body = &schema,
                      .responses = "200 404"),
             DUDA_PUT("/items/:id<uint>", replace, "Replaces an item.", .request_body = &schema,
                      .response_body = &schema, .responses = "200 404"),
             DUDA_DELETE("/items/:id<uint>", drop, "Removes an item.", .responses = "204 404"));
