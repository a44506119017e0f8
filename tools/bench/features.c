/* SPDX-License-Identifier: Apache-2.0 */
/* The service that tools/bench/features.py measures: pairs of routes that differ only in one feature. */
#define DUDA_USE "duda-auth", "duda-sql"
#include <duda.h>
#include <duda/auth.h>
#include <duda/body.h>
#include <duda/cors.h>
#include <duda/render.h>
#include <duda/session.h>
#include <duda/sql.h>
#include <errno.h>
#include <monkey/json_reader.h>
#include <monkey/utf8.h>

static int send_ok(struct duda_ctx *d)
{
    return duda_puts(d, "ok\n");
}

/* ---- Middleware ---- */

static int do_nothing(struct duda_ctx *d)
{
    (void)d;
    return DUDA_NEXT;
}

static int call_next(struct duda_ctx *d)
{
    return duda_next(d);
}

/* The SHA-256 hash of the token "secret". */
static int find_token(struct duda_ctx *d, mk_str hash, struct duda_identity *identity)
{
    (void)d;
    if (!mk_str_eq(hash, MK_STR("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")))
        return -ENOENT;
    identity->user = MK_STR("ada");
    return 0;
}

static const struct duda_token_auth tokens = DUDA_TOKEN_AUTH(.find = find_token);
static const struct duda_route_auth by_token = {.authenticate = duda_auth_bearer,
                                                .authenticate_data = &tokens};
static const struct duda_cors any_app = {.origins = "https://app.example.org"};

DUDA_ROUTES(before_1, DUDA_BEFORE(do_nothing), DUDA_GET("/before-1", send_ok));
DUDA_ROUTES(before_5, DUDA_BEFORE(do_nothing), DUDA_BEFORE(do_nothing), DUDA_BEFORE(do_nothing),
            DUDA_BEFORE(do_nothing), DUDA_BEFORE(do_nothing), DUDA_GET("/before-5", send_ok));
DUDA_ROUTES(around, DUDA_AROUND(call_next), DUDA_GET("/around", send_ok));
DUDA_ROUTES(after, DUDA_AFTER(do_nothing), DUDA_GET("/after", send_ok));
DUDA_ROUTES(cors, DUDA_CORS(&any_app), DUDA_GET("/cors", send_ok));

/* ---- JSON bodies ---- */

struct order {
    mk_str item;
    int64_t count;
    bool urgent;
};
static const struct duda_schema_field order_fields[] = {
    DUDA_STRING(struct order, item, .max_length = 80),
    DUDA_INTEGER(struct order, count, DUDA_MINIMUM(1)),
    DUDA_BOOL(struct order, urgent),
};
static const struct duda_schema order_schema = DUDA_SCHEMA(struct order, order_fields);

struct customer {
    mk_str name, email, street, city, country;
    int64_t id, zip, orders;
    double discount;
    bool active;
};
static const struct duda_schema_field customer_fields[] = {
    DUDA_INTEGER(struct customer, id),      DUDA_STRING(struct customer, name),
    DUDA_STRING(struct customer, email),    DUDA_STRING(struct customer, street),
    DUDA_STRING(struct customer, city),     DUDA_INTEGER(struct customer, zip),
    DUDA_STRING(struct customer, country),  DUDA_INTEGER(struct customer, orders),
    DUDA_DOUBLE(struct customer, discount), DUDA_BOOL(struct customer, active),
};
static const struct duda_schema customer_schema = DUDA_SCHEMA(struct customer, customer_fields);

static int read_body(struct duda_ctx *d)
{
    mk_str body;
    int e = duda_read_all(d, 4096, &body);
    return e ? e : send_ok(d);
}

static int bind_order(struct duda_ctx *d)
{
    struct order o;
    int e = duda_bind_json(d, &order_schema, &o, NULL);
    return e ? e : send_ok(d);
}

static int bind_customer(struct duda_ctx *d)
{
    struct customer c;
    int e = duda_bind_json(d, &customer_schema, &c, NULL);
    return e ? e : send_ok(d);
}

static bool read_integer(struct mk_json_reader *r, int64_t *out)
{
    mk_str number;
    bool is_integer;
    return mk_json_reader_number(r, &number, &is_integer) && is_integer && mk_num_parse_int(number, out);
}

static bool read_double(struct mk_json_reader *r, double *out)
{
    mk_str number;
    bool is_integer;
    return mk_json_reader_number(r, &number, &is_integer) && mk_json_number_parse(number, out);
}

static bool read_bool(struct mk_json_reader *r, bool *out)
{
    *out = mk_json_reader_peek(r) == 't';
    return mk_json_reader_literal(r, *out ? MK_STR("true") : MK_STR("false"));
}

static bool is(mk_str name, const char *expected)
{
    return mk_str_eq(name, mk_str_from_c(expected));
}

/* Reads the member with this name. *has gets a bit for each member, so that duplicates and missing members
 * can be detected. */
static bool read_order_member(struct mk_json_reader *r, mk_str name, struct order *out, unsigned *has)
{
    unsigned bit = is(name, "item") ? 1 : is(name, "count") ? 2 : is(name, "urgent") ? 4 : 0;
    if (!bit || *has & bit)
        return false;
    *has |= bit;
    return bit == 1   ? mk_json_reader_string_copy(r, &out->item) && mk_utf8_count(out->item) <= 80
           : bit == 2 ? read_integer(r, &out->count) && out->count >= 1
                      : read_bool(r, &out->urgent);
}

static bool read_customer_member(struct mk_json_reader *r, mk_str name, struct customer *out, unsigned *has)
{
    static const char *const names[] = {"id",  "name",    "email",  "street",   "city",
                                        "zip", "country", "orders", "discount", "active"};
    mk_str *const strings[] = {NULL, &out->name, &out->email, &out->street, &out->city, NULL, &out->country};
    unsigned i = 0;
    while (i < MK_LEN(names) && !is(name, names[i]))
        i++;
    if (i == MK_LEN(names) || *has & 1U << i)
        return false;
    *has |= 1U << i;
    return i == 0   ? read_integer(r, &out->id)
           : i == 5 ? read_integer(r, &out->zip)
           : i == 7 ? read_integer(r, &out->orders)
           : i == 8 ? read_double(r, &out->discount)
           : i == 9 ? read_bool(r, &out->active)
                    : mk_json_reader_string_copy(r, strings[i]);
}

static int parse_order(struct duda_ctx *d)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct mk_json_reader r;
    struct mk_json_error error;
    struct order o;
    mk_str body, name;
    unsigned has = 0;
    int e = duda_read_all(d, 4096, &body);
    if (e)
        return e;
    if (!mk_json_reader_init(&r, body, &memory, NULL, &error) || !mk_json_reader_expect(&r, '{', "an object"))
        return 400;
    do {
        if (!mk_json_reader_name(&r, &name) || !mk_json_reader_expect(&r, ':', "`:`") ||
            !read_order_member(&r, name, &o, &has))
            return 400;
    } while (mk_json_reader_next_element(&r, '}'));
    return r.error || !mk_json_reader_expect_end(&r) || has != 7 ? 400 : send_ok(d);
}

static int parse_customer(struct duda_ctx *d)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct mk_json_reader r;
    struct mk_json_error error;
    struct customer c;
    mk_str body, name;
    unsigned has = 0;
    int e = duda_read_all(d, 4096, &body);
    if (e)
        return e;
    if (!mk_json_reader_init(&r, body, &memory, NULL, &error) || !mk_json_reader_expect(&r, '{', "an object"))
        return 400;
    do {
        if (!mk_json_reader_name(&r, &name) || !mk_json_reader_expect(&r, ':', "`:`") ||
            !read_customer_member(&r, name, &c, &has))
            return 400;
    } while (mk_json_reader_next_element(&r, '}'));
    return r.error || !mk_json_reader_expect_end(&r) || has != 1023 ? 400 : send_ok(d);
}

/* ---- JSON responses and templates ---- */

static const struct order some_order = {MK_STR("tea"), 3, true};
static const struct customer some_customer = {MK_STR("Ada Lovelace"),
                                              MK_STR("ada@example.org"),
                                              MK_STR("12 St James's Square"),
                                              MK_STR("London"),
                                              MK_STR("GB"),
                                              1815,
                                              10115,
                                              27,
                                              2.5,
                                              true};

static int send_order_struct(struct duda_ctx *d)
{
    return duda_send_json_struct(d, &order_schema, &some_order);
}

static int print_order(struct duda_ctx *d)
{
    const struct order *o = &some_order;
    int e = duda_content_type(d, MK_STR("application/json"));
    return e ? e
             : duda_printf(d, "{\"item\":\"%s\",\"count\":%d,\"urgent\":%s}", o->item.p, (int)o->count,
                           o->urgent ? "true" : "false");
}

static int send_customer_struct(struct duda_ctx *d)
{
    return duda_send_json_struct(d, &customer_schema, &some_customer);
}

static int print_customer(struct duda_ctx *d)
{
    const struct customer *c = &some_customer;
    int e = duda_content_type(d, MK_STR("application/json"));
    return e ? e
             : duda_printf(d,
                           "{\"id\":%d,\"name\":\"%s\",\"email\":\"%s\",\"street\":\"%s\",\"city\":\"%s\","
                           "\"zip\":%d,\"country\":\"%s\",\"orders\":%d,\"discount\":%g,\"active\":%s}",
                           (int)c->id, c->name.p, c->email.p, c->street.p, c->city.p, (int)c->zip,
                           c->country.p, (int)c->orders, c->discount, c->active ? "true" : "false");
}

static int render_page(struct duda_ctx *d)
{
    const struct duda_entry page[] = {{"name", duda_value_text(some_customer.name)},
                                      {"city", duda_value_text(some_customer.city)},
                                      {"orders", duda_value_integer(some_customer.orders)}};
    return duda_render(d, "page.html", duda_value_map(page, MK_LEN(page)));
}

static int print_page(struct duda_ctx *d)
{
    const struct customer *c = &some_customer;
    int e = duda_html(d, MK_STR("<!DOCTYPE html>\n<title>"));
    e = e ? e : duda_write(d, duda_html_escape(d, c->name));
    e = e ? e : duda_puts(d, "</title>\n<p>From ");
    e = e ? e : duda_write(d, duda_html_escape(d, c->city));
    return e ? e : duda_printf(d, ", with %d orders.</p>\n", (int)c->orders);
}

/* ---- Sessions ---- */

static int begin_session(struct duda_ctx *d)
{
    int e = duda_session_set(d, "user", MK_STR("ada"));
    return e ? e : send_ok(d);
}

static int load_session(struct duda_ctx *d)
{
    mk_str user;
    int e = duda_session_get(d, "user", &user);
    return e ? e : send_ok(d);
}

/* ---- Rows ---- */

struct product {
    int64_t id;
    mk_str name;
    double price;
    int32_t stock;
    bool sold;
};
static const struct duda_schema_field product_fields[] = {
    DUDA_INTEGER(struct product, id),   DUDA_STRING(struct product, name),
    DUDA_DOUBLE(struct product, price), DUDA_INTEGER(struct product, stock),
    DUDA_BOOL(struct product, sold),
};
static const struct duda_schema product_schema = DUDA_SCHEMA(struct product, product_fields);

enum { ROWS_MAX = 1000, COLUMNS = MK_LEN(product_fields) };
static mk_str columns[COLUMNS];
static struct duda_sql_value cells[ROWS_MAX][COLUMNS];

static int fill_cells(struct mk_worker *worker)
{
    (void)worker;
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = mk_str_from_c(product_fields[i].name);
    for (size_t i = 0; i < ROWS_MAX; i++) {
        cells[i][0] = duda_sql_integer((int64_t)i);
        cells[i][1] = duda_sql_text(MK_STR("green tea"));
        cells[i][2] = duda_sql_real(2.5);
        cells[i][3] = duda_sql_integer(12);
        cells[i][4] = duda_sql_integer(1);
    }
    return 0;
}

static int result_of(struct duda_ctx *d, struct duda_sql_result *out)
{
    int64_t n;
    if (!duda_param_int(d, "rows", &n) || n < 1 || n > ROWS_MAX)
        return -ENOENT;
    *out = (struct duda_sql_result){
        .columns = columns, .n_columns = COLUMNS, .values = cells[0], .n_rows = (size_t)n};
    return 0;
}

static int bind_rows(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct product *products;
    int e = result_of(d, &result);
    e = e ? e : duda_sql_bind_rows(d, &result, &product_schema, &products);
    return e ? e : send_ok(d);
}

static bool copy_row(const struct duda_sql_value *v, struct product *out)
{
    bool fits = v[0].type == DUDA_SQL_INTEGER && v[1].type == DUDA_SQL_TEXT && v[2].type == DUDA_SQL_REAL &&
                v[3].type == DUDA_SQL_INTEGER && v[3].number == (int32_t)v[3].number &&
                v[4].type == DUDA_SQL_INTEGER && (v[4].number == 0 || v[4].number == 1);
    if (fits)
        *out = (struct product){v[0].number, v[1].text, v[2].real, (int32_t)v[3].number, v[4].number == 1};
    return fits;
}

static int copy_result(struct duda_ctx *d, const struct duda_sql_result *result)
{
    struct product *products = duda_alloc(d, result->n_rows * sizeof *products);
    if (!products)
        return -ENOMEM;
    for (size_t i = 0; i < result->n_rows; i++)
        if (!copy_row(duda_sql_cell(result, i, 0), &products[i]))
            return -EPROTO;
    return send_ok(d);
}

static int copy_rows(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = result_of(d, &result);
    return e ? e : copy_result(d, &result);
}

static int ignore_rows(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = result_of(d, &result);
    return e ? e : send_ok(d);
}

#define SELECT "SELECT id, name, price, stock, sold FROM product LIMIT $1"

static int query_rows(struct duda_ctx *d)
{
    struct product *products;
    size_t n;
    int64_t limit;
    if (!duda_param_int(d, "rows", &limit))
        return -ENOENT;
    int e = duda_sql_query_rows(d, duda_sql_find(d, NULL), &product_schema, &products, &n, SELECT,
                                duda_sql_integer(limit));
    return e ? e : send_ok(d);
}

static int query_and_copy_rows(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int64_t limit;
    if (!duda_param_int(d, "rows", &limit))
        return -ENOENT;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result, SELECT, duda_sql_integer(limit));
    return e ? e : copy_result(d, &result);
}

DUDA_SERVICE(features, DUDA_START(fill_cells), DUDA_GET("/plain", send_ok), DUDA_GROUP("", before_1),
             DUDA_GROUP("", before_5), DUDA_GROUP("", around), DUDA_GROUP("", after), DUDA_GROUP("", cors),
             DUDA_GET("/auth", send_ok, "", .auth = &by_token),
             DUDA_GET("/rate", send_ok, "", .rate = "200000/day"), DUDA_POST("/body", read_body),
             DUDA_POST("/order/schema", bind_order), DUDA_POST("/order/code", parse_order),
             DUDA_POST("/customer/schema", bind_customer), DUDA_POST("/customer/code", parse_customer),
             DUDA_GET("/order/schema", send_order_struct), DUDA_GET("/order/code", print_order),
             DUDA_GET("/customer/schema", send_customer_struct), DUDA_GET("/customer/code", print_customer),
             DUDA_GET("/page/template", render_page), DUDA_GET("/page/code", print_page),
             DUDA_PUT("/session", begin_session), DUDA_GET("/session", load_session),
             DUDA_GET("/rows/:rows/schema", bind_rows), DUDA_GET("/rows/:rows/code", copy_rows),
             DUDA_GET("/rows/:rows/none", ignore_rows), DUDA_GET("/sqlite/:rows/schema", query_rows),
             DUDA_GET("/sqlite/:rows/code", query_and_copy_rows));
