/* SPDX-License-Identifier: Apache-2.0 */
/* HttpArena's `baseline` and `json` profiles as a Duda service, which tools/bench/arena.py measures. The
 * environment variable ARENA_DATASET names the file of the items. */
#include <duda.h>
#include <duda/body.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <errno.h>
#include <monkey/allocator.h>
#include <stdio.h>
#include <stdlib.h>

struct rating {
    int64_t score, count;
};

struct item {
    int64_t id;
    mk_str name, category;
    int64_t price, quantity;
    bool active;
    mk_str *tags;
    size_t n_tags;
    struct rating rating;
    int64_t total;
};

struct response {
    struct item *items;
    size_t count;
};

static const struct duda_schema_field rating_fields[] = {
    DUDA_INTEGER(struct rating, score),
    DUDA_INTEGER(struct rating, count),
};
static const struct duda_schema rating_schema = DUDA_SCHEMA(struct rating, rating_fields);

/* `total` is computed for each response, so it is absent in the dataset. */
static const struct duda_schema_field item_fields[] = {
    DUDA_INTEGER(struct item, id),
    DUDA_STRING(struct item, name),
    DUDA_STRING(struct item, category),
    DUDA_INTEGER(struct item, price),
    DUDA_INTEGER(struct item, quantity),
    DUDA_BOOL(struct item, active),
    DUDA_LIST(struct item, tags, n_tags, DUDA_KIND_STRING),
    DUDA_OBJECT(struct item, rating, &rating_schema),
    DUDA_INTEGER(struct item, total, .optional = true),
};
static const struct duda_schema item_schema = DUDA_SCHEMA(struct item, item_fields);

static const struct duda_schema_field response_fields[] = {
    DUDA_LIST(struct response, items, count, DUDA_KIND_OBJECT, .schema = &item_schema),
    DUDA_INTEGER(struct response, count),
};
static const struct duda_schema response_schema = DUDA_SCHEMA(struct response, response_fields);

static struct item *dataset;
static size_t n_items;

static void *alloc_on_heap(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static int read_dataset(struct mk_worker *worker)
{
    static char text[1 << 20];
    static struct duda_validation_errors errors;
    const char *path = getenv("ARENA_DATASET");
    const struct mk_allocator heap = {alloc_on_heap, NULL};
    (void)worker;
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return -ENOENT;
    size_t len = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    return duda_json_read_list(mk_str_of(text, len), &item_schema, &heap, NULL, (void *)&dataset, &n_items,
                               &errors);
}

static int send_items(struct duda_ctx *d)
{
    int64_t count, factor;
    if (!duda_param_int(d, "count", &count) || count < 0 || !duda_query_int_or(d, "m", 1, &factor))
        return 400;
    size_t n = (size_t)count < n_items ? (size_t)count : n_items;
    struct item *items = duda_alloc(d, n * sizeof *items);
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        items[i] = dataset[i];
        items[i].total = items[i].price * items[i].quantity * factor;
    }
    const struct response response = {items, n};
    return duda_send_json_struct(d, &response_schema, &response);
}

static int send_sum(struct duda_ctx *d)
{
    int64_t a, b;
    if (!duda_query_int_or(d, "a", 0, &a) || !duda_query_int_or(d, "b", 0, &b))
        return 400;
    return duda_printf(d, "%lld", (long long)(a + b));
}

DUDA_SERVICE(arena, DUDA_START(read_dataset),
             DUDA_GET("/json/:count", send_items, "Sends the first items of the dataset."),
             DUDA_GET("/baseline11", send_sum, "Adds two numbers."));
