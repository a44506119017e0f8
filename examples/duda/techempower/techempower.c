/* SPDX-License-Identifier: Apache-2.0 */
/* The seven test types of the TechEmpower framework benchmarks: JSON, plain text, one or several queries to
 * PostgreSQL, updates, a template, and a cache. */
#define DUDA_USE "duda-sql", "duda-store"
#include <duda.h>
#include <duda/memory.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <errno.h>
#include <monkey/text.h>
#include <stdlib.h>

enum { ROWS = 10000, QUERIES_MAX = 500, FORTUNES_MAX = 100, NUMBERS = 64, KEY_ROOM = 16 };

static const char read_row[] = "SELECT id, randomnumber FROM world WHERE id = $1";

/* ---- JSON and plain text ---- */

struct message {
    mk_str message;
};

static const struct duda_schema_field message_fields[] = {DUDA_STRING(struct message, message)};
static const struct duda_schema message_schema = DUDA_SCHEMA(struct message, message_fields);

static int json(struct duda_ctx *d)
{
    const struct message m = {MK_STR("Hello, World!")};
    return duda_send_json_struct(d, &message_schema, &m);
}

static int plaintext(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("text/plain"));
    return e ? e : duda_puts(d, "Hello, World!");
}

/* ---- Rows ---- */

struct world {
    int id, number;
};

static const struct duda_schema_field world_fields[] = {
    DUDA_INTEGER(struct world, id),
    DUDA_INTEGER(struct world, number, .json_name = "randomNumber"),
};
static const struct duda_schema world_schema = DUDA_SCHEMA(struct world, world_fields);

/* Returns a random row ID, 1 to 10,000. Random numbers are generated in batches. */
static int any_number(void)
{
    static uint32_t numbers[NUMBERS];
    static unsigned left;
    if (!left) {
        mk_random(numbers, sizeof numbers);
        left = NUMBERS;
    }
    return 1 + (int)((uint64_t)numbers[--left] * ROWS >> 32);
}

/* The requested number of rows, limited to 1 to 500; 1 if the parameter is not a number. */
static size_t requested_count(struct duda_ctx *d, const char *name)
{
    char *end;
    const char *text = duda_query_or(d, name, "");
    long n = strtol(text, &end, 10);
    return *end || n < 1 ? 1 : n > QUERIES_MAX ? QUERIES_MAX : (size_t)n;
}

static int take_row(const struct duda_sql_result *result, struct world *out)
{
    if (result->n_rows != 1)
        return -ENOENT;
    out->id = (int)duda_sql_cell(result, 0, 0)->number;
    out->number = (int)duda_sql_cell(result, 0, 1)->number;
    return 0;
}

/* One query per row, as the rules require; all are sent as one pipeline. */
static int read_rows(struct duda_ctx *d, struct world *rows, size_t n)
{
    struct duda_sql_statement *queries = duda_alloc(d, n * sizeof *queries);
    struct duda_sql_value *ids = duda_alloc(d, n * sizeof *ids);
    struct duda_sql_result *results = duda_alloc(d, n * sizeof *results);
    if (!queries || !ids || !results)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        ids[i] = duda_sql_integer(any_number());
        queries[i] = (struct duda_sql_statement){read_row, &ids[i], 1};
    }
    int e = duda_sql_batch(d, duda_sql_find(d, NULL), queries, n, results);
    for (size_t i = 0; i < n && !e; i++)
        e = take_row(&results[i], &rows[i]);
    return e;
}

static int db(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct world row;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, read_row, duda_sql_integer(any_number()));
    e = e ? e : take_row(&result, &row);
    return e ? e : duda_send_json_struct(d, &world_schema, &row);
}

static int queries(struct duda_ctx *d)
{
    size_t n = requested_count(d, "queries");
    struct world *rows = duda_alloc(d, n * sizeof *rows);
    int e = rows ? read_rows(d, rows, n) : -ENOMEM;
    return e ? e : duda_send_json(d, duda_value_structs(&world_schema, rows, n));
}

/* ---- Fortunes ---- */

struct fortune {
    int id;
    mk_str message;
};

static const struct duda_schema_field fortune_fields[] = {
    DUDA_INTEGER(struct fortune, id),
    DUDA_STRING(struct fortune, message),
};
static const struct duda_schema fortune_schema = DUDA_SCHEMA(struct fortune, fortune_fields);

static int by_message(const void *a, const void *b)
{
    return mk_str_cmp(((const struct fortune *)a)->message, ((const struct fortune *)b)->message);
}

static int fortunes(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct fortune all[FORTUNES_MAX + 1] = {{0, MK_STR("Additional fortune added at request time.")}};
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, "SELECT id, message FROM fortune");
    if (e)
        return e;
    size_t n = 1;
    for (size_t i = 0; i < result.n_rows && n <= FORTUNES_MAX; i++, n++)
        all[n] =
            (struct fortune){(int)duda_sql_cell(&result, i, 0)->number, duda_sql_cell(&result, i, 1)->text};
    qsort(all, n, sizeof *all, by_message);
    const struct duda_entry page[] = {{"fortunes", duda_value_structs(&fortune_schema, all, n)}};
    return duda_render(d, "fortunes.html", duda_value_map(page, MK_LEN(page)));
}

/* ---- Updates ---- */

static int by_id(const void *a, const void *b)
{
    return ((const struct world *)a)->id - ((const struct world *)b)->id;
}

/* Writes an array in the syntax of PostgreSQL: "{1,2,3}". Writes only the last of several rows with one ID. */
static void write_array(struct mk_buf *out, const struct world *rows, size_t n, size_t offset)
{
    mk_buf_add_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && rows[i].id == rows[i + 1].id)
            continue;
        int number;
        memcpy(&number, (const char *)&rows[i] + offset, sizeof number);
        if (out->len > 1)
            mk_buf_add_char(out, ',');
        mk_buf_add_num(out, (uint64_t)number);
    }
    mk_buf_add_char(out, '}');
}

/* Updates rows in the order of their IDs, so that concurrent updates cannot deadlock. */
static int write_rows(struct duda_ctx *d, struct world *rows, size_t n)
{
    enum { NUMBER_ROOM = 7 };
    struct duda_sql_result result;
    size_t space = n * NUMBER_ROOM + 2;
    char *ids_buf = duda_alloc(d, space), *numbers_room = duda_alloc(d, space);
    if (!ids_buf || !numbers_room)
        return -ENOMEM;
    struct mk_buf ids = mk_buf_fixed(ids_buf, space), numbers = mk_buf_fixed(numbers_room, space);
    qsort(rows, n, sizeof *rows, by_id);
    write_array(&ids, rows, n, offsetof(struct world, id));
    write_array(&numbers, rows, n, offsetof(struct world, number));
    return duda_sql_query(d, duda_sql_find(d, NULL), &result,
                          "UPDATE world SET randomnumber = new.number FROM (SELECT unnest($1::int[]) AS id, "
                          "unnest($2::int[]) AS number ORDER BY 1) AS new WHERE world.id = new.id",
                          duda_sql_text(mk_buf_str(&ids)), duda_sql_text(mk_buf_str(&numbers)));
}

static int updates(struct duda_ctx *d)
{
    size_t n = requested_count(d, "queries");
    struct world *rows = duda_alloc(d, n * sizeof *rows);
    int e = rows ? read_rows(d, rows, n) : -ENOMEM;
    for (size_t i = 0; i < n && !e; i++)
        rows[i].number = any_number();
    e = e ? e : write_rows(d, rows, n);
    return e ? e : duda_send_json(d, duda_value_structs(&world_schema, rows, n));
}

/* ---- The cache ---- */

/* Reads a row from the cache, and on a miss from the database. */
static int read_cached(struct duda_ctx *d, struct duda_store *cache, int id, struct world *out)
{
    char buf[KEY_ROOM];
    struct mk_buf key = mk_buf_fixed(buf, sizeof buf);
    struct duda_sql_result result;
    mk_str value;
    mk_buf_add(&key, MK_STR("world/"));
    mk_buf_add_num(&key, (uint64_t)id);
    int e = duda_store_get(d, cache, mk_buf_str(&key), &value);
    if (!e && value.len == sizeof *out) {
        memcpy(out, value.p, sizeof *out);
        return 0;
    }
    e = duda_sql_query(d, duda_sql_find(d, NULL), &result, read_row, duda_sql_integer(id));
    e = e ? e : take_row(&result, out);
    return e ? e : duda_store_set(d, cache, mk_buf_str(&key), mk_str_of((const char *)out, sizeof *out), 0);
}

static int cached(struct duda_ctx *d)
{
    size_t n = requested_count(d, "count");
    struct world *rows = duda_alloc(d, n * sizeof *rows);
    struct duda_store *cache = duda_store_find(d, "memory");
    int e = rows ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && !e; i++)
        e = read_cached(d, cache, any_number(), &rows[i]);
    return e ? e : duda_send_json(d, duda_value_structs(&world_schema, rows, n));
}

DUDA_SERVICE(techempower, DUDA_GET("/json", json, "An object."), DUDA_GET("/plaintext", plaintext, "A text."),
             DUDA_GET("/db", db, "A row."),
             DUDA_GET("/queries", queries, "?queries=N rows, a query for each."),
             DUDA_GET("/fortunes", fortunes, "A page."),
             DUDA_GET("/updates", updates, "?queries=N rows, with new numbers."),
             DUDA_GET("/cached-queries", cached, "?count=N rows of a cache."));
