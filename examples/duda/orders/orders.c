/* SPDX-License-Identifier: Apache-2.0 */
/* Features specific to PostgreSQL: LISTEN and NOTIFY report each order to open pages, whichever program
 * stored it; COPY imports and exports tables of any size as CSV. */
#define DUDA_USE "duda-sql", "duda-postgres"
#include <duda.h>
#include <duda/postgres.h>
#include <duda/sql.h>
#include <errno.h>

enum { PIECE = 16 << 10 };

struct order {
    mk_str goods;
    int64_t pieces;
};

static const struct duda_schema_field members[] = {
    DUDA_STRING(struct order, goods, .min_length = 1, .max_length = 100),
    DUDA_INTEGER(struct order, pieces, DUDA_MINIMUM(1), DUDA_MAXIMUM(1000)),
};
static const struct duda_schema schema = DUDA_SCHEMA(struct order, members);

static struct duda_sql_db *database(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

/* A trigger on the table notifies the subscribers on commit. */
static int order(struct duda_ctx *d)
{
    struct order o = {.pieces = 1};
    int e = duda_bind_json(d, &schema, &o, NULL);
    e = e ? e
          : duda_sql_query_struct(d, database(d), NULL,
                                  "INSERT INTO orders (goods, pieces) VALUES (:goods, :pieces)", &schema, &o);
    return e ? e : 201;
}

/* ---- Events ---- */

static int show_sum(struct duda_ctx *d)
{
    struct duda_sql_value n;
    int e = duda_sql_query_cell(d, database(d), &n, "SELECT count(*) FROM orders");
    return e ? e
             : duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("sum"),
                                                       .data = duda_sprintf(d, "%lld", (long long)n.number)});
}

/* Subscribes before it counts, so that no order is missed in between. -ECONNRESET (the connection was lost)
 * and -EOVERFLOW mean that notifications were lost: the new sum includes these orders. */
static int follow(struct duda_ctx *d)
{
    struct duda_postgres_sub *sub;
    mk_str text;
    int e = duda_postgres_subscribe(d, database(d), MK_STR("orders"), &sub);
    e = e ? e : duda_deadline(d, MK_FOREVER);
    e = e ? e : show_sum(d);
    while (!e) {
        e = duda_postgres_receive(d, sub, MK_FOREVER, &text);
        if (!e)
            e = duda_sse_send(d, &(struct mk_sse_event){.name = MK_STR("order"), .data = text});
        else if (e == -ECONNRESET || e == -EOVERFLOW)
            e = show_sum(d);
    }
    return e;
}

/* ---- Tables ---- */

static int export(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    mk_str row;
    int e = duda_postgres_copy(d, database(d), &result,
                               "COPY (SELECT goods, pieces FROM orders ORDER BY id) TO STDOUT (FORMAT csv)",
                               &copy);
    e = e ? e : duda_content_type(d, MK_STR("text/csv; charset=utf-8; header=absent"));
    while (!e && !(e = duda_postgres_copy_read(d, copy, &row)) && row.p)
        e = duda_write(d, row);
    return e ? e : duda_postgres_copy_end(d, copy);
}

static int import(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_postgres_copy *copy;
    char buf[PIECE];
    ssize_t n = 0;
    int e = duda_postgres_copy(d, database(d), &result, "COPY orders (goods, pieces) FROM STDIN (FORMAT csv)",
                               &copy);
    while (!e && (n = duda_read(d, buf, sizeof buf)) > 0)
        e = duda_postgres_copy_write(d, copy, mk_str_of(buf, (size_t)n));
    e = e ? e : n < 0 ? (int)n : duda_postgres_copy_end(d, copy);
    if (e == -EBADMSG || e == -EEXIST || e == -ERANGE)
        return duda_problem(d, 422, "%.*s", MK_STR_ARG(result.error));
    return e ? e : duda_printf(d, "%lld orders\n", (long long)result.rows_affected);
}

DUDA_SERVICE(orders,
             DUDA_POST("/orders", order, "Stores an order.", .request_body = &schema, .responses = "201"),
             DUDA_GET("/events", follow, "Orders as events."), DUDA_GET("/orders.csv", export, "All orders."),
             DUDA_POST("/orders.csv", import, "Stores many orders, or none."));
