/* SPDX-License-Identifier: Apache-2.0 */
/* A shop: customers, goods, a basket in the session, and orders in transactions. It uses only SQL that both
 * SQLite and PostgreSQL support, so one line of the configuration switches between them. */
#define DUDA_USE "duda-sql", "duda-auth"
#include <duda.h>
#include <duda/auth.h>
#include <duda/sql.h>
#include <errno.h>

enum { NAME_LEN_MAX = 40, PASSWORD_LEN_MIN = 8, SEARCH_LEN_MAX = 100, LINES_MAX = 20, N_MAX = 99 };

static struct duda_sql_db *data(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

/* ---- Pages ---- */

struct item {
    int64_t id, n, cents;
    mk_str order, name, price, sum;
    bool is_first; /* first line of its order */
};

/* For rows and templates. Not every query returns the optional columns. */
static const struct duda_schema_field item_fields[] = {
    DUDA_INTEGER(struct item, id),
    DUDA_INTEGER(struct item, n, .optional = true),
    DUDA_INTEGER(struct item, cents),
    DUDA_STRING(struct item, name),
    DUDA_STRING(struct item, order, .optional = true),
    DUDA_STRING(struct item, price, .optional = true),
    DUDA_STRING(struct item, sum, .optional = true),
    DUDA_BOOL(struct item, is_first, .optional = true),
};
static const struct duda_schema item_schema = DUDA_SCHEMA(struct item, item_fields);

static mk_str money(struct duda_ctx *d, int64_t cents)
{
    return duda_sprintf(d, "%lld.%02lld", (long long)(cents / 100), (long long)(cents % 100));
}

static int show(struct duda_ctx *d, const char *page, unsigned status, const char *notice,
                const struct item *items, size_t n, int64_t total)
{
    mk_str customer;
    int e = duda_session_get(d, "customer", &customer);
    if (e && e != -ENOENT)
        return e;
    const struct duda_entry values[] = {
        {"customer", duda_value_text(customer)},     {"notice", duda_value_cstr(notice)},
        {"q", duda_value_text(duda_query(d, "q"))},  {"items", duda_value_structs(&item_schema, items, n)},
        {"total", duda_value_text(money(d, total))},
    };
    e = duda_render(d, page, duda_value_map(values, MK_LEN(values)));
    return e ? e : duda_status(d, status);
}

/* -EBADMSG is an error of the client, such as invalid UTF-8, so it is not logged. */
static int fail(struct duda_ctx *d, int e, const struct duda_sql_result *result)
{
    if (e != -EBADMSG)
        duda_log(d, MK_LOG_ERROR, "%.*s", MK_STR_ARG(result->error));
    return e;
}

/* ---- Goods ---- */

/* Computes the fields that the pages show, and returns the total of all items. */
static int64_t complete_items(struct duda_ctx *d, struct item *items, size_t n)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].price = money(d, items[i].cents);
        items[i].sum = money(d, items[i].cents * items[i].n);
        items[i].is_first = !i || !mk_str_eq(items[i].order, items[i - 1].order);
        total += items[i].cents * items[i].n;
    }
    return total;
}

static int list(struct duda_ctx *d)
{
    struct item *items;
    size_t n;
    mk_str search = duda_query(d, "q");
    if (search.len > SEARCH_LEN_MAX)
        return 422;
    int e = duda_sql_query_rows(
        d, data(d), &item_schema, &items, &n,
        "SELECT id, name, price AS cents, stock AS n FROM goods "
        "WHERE lower(name) LIKE '%' || lower($1) || '%' ESCAPE '!' ORDER BY name LIMIT 100",
        duda_sql_text(duda_sql_like_escape(d, search)));
    (void)complete_items(d, items, n);
    return e ? e : show(d, "goods.html", 200, NULL, items, n, 0);
}

/* ---- The basket in the session: the ID of the future order, then ID:N for each product ---- */

struct basket {
    mk_str number;
    size_t n;
    struct {
        uint64_t id, n;
    } lines[LINES_MAX];
};

/* A session without a basket has an empty one. */
static int read_basket(struct duda_ctx *d, struct basket *b)
{
    mk_str rest;
    int e = duda_session_get(d, "basket", &rest);
    b->number = mk_str_cut(&rest, ' ');
    b->n = 0;
    while (rest.len && b->n < LINES_MAX) {
        mk_str line = mk_str_cut(&rest, ' '), id = mk_str_cut(&line, ':');
        if (mk_num_parse(id, &b->lines[b->n].id) && mk_num_parse(line, &b->lines[b->n].n))
            b->n++;
    }
    return e == -ENOENT ? 0 : e;
}

static int write_basket(struct duda_ctx *d, const struct basket *b)
{
    char buf[DUDA_UUID_LEN + LINES_MAX * 24], number[DUDA_UUID_LEN];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    duda_uuid4(number);
    mk_buf_add(&text, b->number.len ? b->number : mk_str_of(number, sizeof number));
    for (size_t i = 0; i < b->n; i++)
        mk_buf_addf(&text, " %llu:%llu", (unsigned long long)b->lines[i].id,
                    (unsigned long long)b->lines[i].n);
    return text.failed ? -EINVAL : duda_session_set(d, "basket", b->n ? mk_buf_str(&text) : MK_STR_NULL);
}

/* Sets the quantity of a product; 0 removes it. Lines are sorted by ID: all transactions lock rows in this
 * order, so they cannot deadlock. */
static bool put(struct basket *b, uint64_t id, uint64_t n)
{
    size_t at = 0;
    while (at < b->n && b->lines[at].id < id)
        at++;
    bool is_there = at < b->n && b->lines[at].id == id;
    if (!n) {
        if (is_there)
            memmove(&b->lines[at], &b->lines[at + 1], (--b->n - at) * sizeof b->lines[0]);
        return true;
    }
    if (!is_there && b->n == LINES_MAX)
        return false;
    if (!is_there)
        memmove(&b->lines[at + 1], &b->lines[at], (b->n++ - at) * sizeof b->lines[0]);
    b->lines[at].id = id;
    b->lines[at].n = n;
    return true;
}

static int change_basket(struct duda_ctx *d)
{
    struct basket b;
    struct duda_sql_result result;
    uint64_t id, n;
    if (!mk_num_parse(duda_form(d, "id"), &id) || id > INT32_MAX || !mk_num_parse(duda_form(d, "n"), &n) ||
        n > N_MAX)
        return 422;
    int e = duda_sql_query(d, data(d), &result, "SELECT 1 FROM goods WHERE id = $1",
                           duda_sql_integer((int64_t)id));
    if (e)
        return fail(d, e, &result);
    if (!result.n_rows)
        return 404;
    e = read_basket(d, &b);
    if (e)
        return e;
    if (!put(&b, id, n))
        return duda_problem(d, 422, "a basket has up to %d kinds of goods", LINES_MAX);
    e = write_basket(d, &b);
    return e ? e : duda_redirect(d, 303, MK_STR("/basket"));
}

static int show_basket_with(struct duda_ctx *d, unsigned status, const char *notice)
{
    struct basket b;
    struct item *items = duda_alloc(d, LINES_MAX * sizeof *items);
    size_t n = 0;
    int e = items ? read_basket(d, &b) : -ENOMEM;
    for (size_t i = 0; !e && i < b.n; i++) {
        items[n] = (struct item){.n = (int64_t)b.lines[i].n, .order = MK_STR("")};
        e = duda_sql_query_row(d, data(d), &item_schema, &items[n],
                               "SELECT id, name, price AS cents FROM goods WHERE id = $1",
                               duda_sql_integer((int64_t)b.lines[i].id));
        n += !e;
        e = e == -ENOENT ? 0 : e;
    }
    return e ? e : show(d, "basket.html", status, notice, items, n, complete_items(d, items, n));
}

static int show_basket(struct duda_ctx *d)
{
    return show_basket_with(d, 200, NULL);
}

/* ---- Orders ---- */

/* Reduces the stock and adds an order line at the current price. -ENODATA: not enough in stock. */
static int take(struct duda_ctx *d, mk_str order, uint64_t id, uint64_t n, struct duda_sql_result *result)
{
    const struct duda_sql_value good = duda_sql_integer((int64_t)id), count = duda_sql_integer((int64_t)n);
    int e = duda_sql_query(d, data(d), result,
                           "UPDATE goods SET stock = stock - $2 WHERE id = $1 AND stock >= $2", good, count);
    if (!e && result->rows_affected != 1)
        return -ENODATA;
    return e ? e
             : duda_sql_query(
                   d, data(d), result,
                   "INSERT INTO order_lines (order_id, good, n, price) SELECT $1, id, $3, price FROM "
                   "goods WHERE id = $2",
                   duda_sql_text(order), good, count);
}

struct new_order {
    mk_str customer;
    const struct basket *basket;
    struct duda_sql_result *result;
};

/* Runs in a transaction: all lines or none. The order ID comes from the basket, so a repeated submission fails
 * with -EEXIST instead of ordering twice. */
static int place(struct duda_ctx *d, struct duda_sql_db *db, void *ctx)
{
    const struct new_order *new = ctx;
    const struct basket *b = new->basket;
    int e = duda_sql_query(d, db, new->result, "INSERT INTO orders (id, customer, made) VALUES ($1, $2, $3)",
                           duda_sql_text(b->number), duda_sql_text(new->customer),
                           duda_sql_integer(mk_worker_now(duda_worker(d))));
    for (size_t i = 0; i < b->n && !e; i++)
        e = take(d, b->number, b->lines[i].id, b->lines[i].n, new->result);
    return e;
}

static int order(struct duda_ctx *d)
{
    struct basket b;
    struct duda_sql_result result = {.error = MK_STR("the order was not placed")};
    mk_str customer;
    int e = duda_session_get(d, "customer", &customer);
    if (e)
        return e == -ENOENT ? duda_redirect(d, 303, MK_STR("/account")) : e;
    e = read_basket(d, &b);
    if (e)
        return e;
    if (!b.n)
        return duda_redirect(d, 303, MK_STR("/basket"));
    struct new_order new = {.customer = customer, .basket = &b, .result = &result};
    e = duda_sql_transaction(d, data(d), NULL, place, &new);
    if (e == -ENODATA)
        return show_basket_with(d, 409, "There are not so many left.");
    if (e == -EEXIST && mk_str_eq(duda_sql_last_violation(d)->table, MK_STR("orders")))
        e = 0; /* placed by an earlier submission */
    if (e)
        return fail(d, e, &result);
    e = duda_session_set(d, "basket", MK_STR_NULL);
    return e ? e : duda_redirect(d, 303, MK_STR("/orders"));
}

static int show_orders(struct duda_ctx *d)
{
    struct item *items;
    size_t n;
    mk_str customer;
    int e = duda_session_get(d, "customer", &customer);
    if (e)
        return e == -ENOENT ? duda_redirect(d, 303, MK_STR("/account")) : e;
    e = duda_sql_query_rows(
        d, data(d), &item_schema, &items, &n,
        "SELECT g.id, g.name, l.price AS cents, l.n, o.id AS \"order\" FROM orders o JOIN order_lines l ON "
        "l.order_id = o.id "
        "JOIN goods g ON g.id = l.good WHERE o.customer = $1 ORDER BY o.made DESC, o.id, g.id LIMIT 500",
        duda_sql_text(customer));
    return e ? e : show(d, "orders.html", 200, NULL, items, n, complete_items(d, items, n));
}

/* ---- Customers ---- */

static bool is_form_complete(struct duda_ctx *d)
{
    mk_str name = duda_form(d, "name"), password = duda_form(d, "password");
    return name.len && name.len <= NAME_LEN_MAX && !memchr(name.p, 0, name.len) &&
           password.len >= PASSWORD_LEN_MIN && password.len <= DUDA_PASSWORD_MAX &&
           !memchr(password.p, 0, password.len);
}

static int show_account_with(struct duda_ctx *d, unsigned status, const char *notice)
{
    return show(d, "account.html", status, notice, NULL, 0, 0);
}

static int show_account(struct duda_ctx *d)
{
    return show_account_with(d, 200, NULL);
}

static int enter(struct duda_ctx *d)
{
    int e = duda_session_regenerate(d); /* prevents session fixation */
    e = e ? e : duda_session_set(d, "customer", duda_form(d, "name"));
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

static int sign_up(struct duda_ctx *d)
{
    struct duda_sql_result result;
    char hash[DUDA_PASSWORD_SIZE];
    if (!is_form_complete(d))
        return show_account_with(d, 422, "A name has 1 to 40 bytes, a password at least 8.");
    int e = duda_password_hash(d, duda_form(d, "password"), hash);
    if (e)
        return e;
    e = duda_sql_query(d, data(d), &result,
                       "INSERT INTO customers (name, password, joined) VALUES ($1, $2, $3)",
                       duda_sql_text(duda_form(d, "name")), duda_sql_text(mk_str_from_c(hash)),
                       duda_sql_integer(mk_worker_now(duda_worker(d))));
    if (e == -EEXIST)
        return show_account_with(d, 409, "This name is taken.");
    return e ? fail(d, e, &result) : enter(d);
}

static int log_in(struct duda_ctx *d)
{
    struct duda_sql_result result;
    bool matches = false;
    if (!is_form_complete(d))
        return show_account_with(d, 403, "Name or password is wrong.");
    int e = duda_sql_query(d, data(d), &result, "SELECT password FROM customers WHERE name = $1",
                           duda_sql_text(duda_form(d, "name")));
    if (e)
        return fail(d, e, &result);
    /* An unknown customer takes as long as a wrong password. */
    mk_str hash = result.n_rows ? duda_sql_cell(&result, 0, 0)->text : MK_STR_NULL;
    e = duda_password_verify(d, duda_form(d, "password"), hash, &matches);
    if (e)
        return e;
    return matches ? enter(d) : show_account_with(d, 403, "Name or password is wrong.");
}

static int log_out(struct duda_ctx *d)
{
    int e = duda_session_destroy(d);
    return e ? e : duda_redirect(d, 303, MK_STR("/"));
}

DUDA_SERVICE(shop, DUDA_BEFORE(duda_csrf_check), DUDA_GET("/", list, "Goods, or those that a search finds."),
             DUDA_GET("/basket", show_basket, "The basket."),
             DUDA_POST("/basket", change_basket, "Puts goods into it; 0 takes them out."),
             DUDA_POST("/orders", order, "Orders what is in the basket."),
             DUDA_GET("/orders", show_orders, "The orders of the customer."),
             DUDA_GET("/account", show_account, "The form to log in."),
             DUDA_POST("/account/in", log_in, "Logs in."), DUDA_POST("/account/new", sign_up, "Signs up."),
             DUDA_POST("/account/out", log_out, "Logs out."));
