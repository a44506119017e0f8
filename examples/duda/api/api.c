/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON API for production: page numbers and cursors, CORS, rate limits, JSON Web Tokens, API keys and
 * passwords, conditional requests, downloads with ranges, uploads to files, metrics, readiness, structured logs,
 * and work after the response. */
#define DUDA_USE         "duda-sql", "duda-auth", "duda-jwt"
#define DUDA_SETTINGS    settings_table
#define DUDA_API_TITLE   "Books"
#define DUDA_API_VERSION "1.0.0"
#include <duda.h>
#include <duda/auth.h>
#include <duda/jwt.h>
#include <duda/sql.h>
#include <duda/task.h>
#include <errno.h>
#include <monkey/clock.h>

enum { COVER_MAX = 8 << 20 };

/* ---- Settings ---- */

struct settings {
    mk_str covers; /* folder; in the configuration, relative to the configuration file */
    mk_str admin;  /* password of the administrator */
};

static bool parse_folder(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str path = mk_conf_ctx_path(ctx, value);
    *(mk_str *)field = path;
    return path.p;
}

static const struct mk_conf_key settings_keys[] = {{.name = "Covers",
                                                    .type = MK_CONF_CUSTOM,
                                                    MK_CONF_AT(struct settings, covers),
                                                    .flags = MK_CONF_REQUIRED,
                                                    .parse = parse_folder,
                                                    .syntax = "FOLDER",
                                                    .help = "Folder of the covers."},
                                                   {.name = "AdminPassword",
                                                    .type = MK_CONF_CUSTOM,
                                                    MK_CONF_AT(struct settings, admin),
                                                    .flags = MK_CONF_REQUIRED,
                                                    .parse = duda_secret,
                                                    .syntax = DUDA_SECRET_SYNTAX,
                                                    .help = "Password of the administrator."}};
static const struct mk_conf_table settings_table = {.section = "BOOKS",
                                                    .keys = settings_keys,
                                                    .n = MK_LEN(settings_keys),
                                                    .size = sizeof(struct settings),
                                                    .help = "The API of books."};

/* ---- Metrics ---- */

DUDA_COUNTER(books_added, "books_added_total", "Books added.", "user");
DUDA_DURATION(durations, "call_seconds", "Duration of a call.", "kind");

/* Middleware that wraps the handlers. Its `.data` is the label of the metric. */
static int measure(struct duda_ctx *d)
{
    uint64_t begin = mk_clock_us();
    int result = duda_next(d);
    duda_duration_observe_us(d, &durations, mk_clock_us() - begin, mk_str_from_c(duda_middleware_data(d)));
    return result;
}

/* ---- Books ---- */

struct book {
    int64_t id;
    mk_str title, author;
    int64_t year;
};

static const struct duda_schema_field book_fields[] = {
    DUDA_INTEGER(struct book, id, .optional = true),
    DUDA_STRING(struct book, title, .min_length = 1, .max_length = 200),
    DUDA_STRING(struct book, author, .min_length = 1, .max_length = 100),
    DUDA_INTEGER(struct book, year, DUDA_MINIMUM(1450), DUDA_MAXIMUM(2100)),
};
static const struct duda_schema book_schema = DUDA_SCHEMA(struct book, book_fields);

struct search {
    mk_str q;
    int64_t page, per_page;
};

/* Documents the parameters of GET /books. duda_page_read() reads the last two of them. */
static const struct duda_schema_field search_fields[] = {
    DUDA_STRING(struct search, q, .optional = true, .max_length = 100),
    DUDA_INTEGER(struct search, page, .optional = true, DUDA_MINIMUM(1)),
    DUDA_INTEGER(struct search, per_page, .optional = true, DUDA_MINIMUM(1), DUDA_MAXIMUM(100)),
};
static const struct duda_schema search_schema = DUDA_SCHEMA(struct search, search_fields);

static struct duda_sql_db *db(struct duda_ctx *d)
{
    return duda_sql_find(d, NULL);
}

/* Sends at most `max` books: the query may have found one more. */
static int send_books(struct duda_ctx *d, struct duda_sql_result *result, size_t max)
{
    struct book *books;
    int e = duda_sql_bind_rows(d, result, &book_schema, &books);
    size_t n = result->n_rows < max ? result->n_rows : max;
    return e ? e : duda_send_json(d, duda_value_structs(&book_schema, books, n));
}

/* Pages with numbers: GET /books?q=moon&page=2. The header Link names the neighboring pages. */
static int list(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct duda_sql_value count;
    struct duda_page page = {.size = 10, .size_max = 100};
    struct search search = {.q = MK_STR(""), .page = 1};
    int e = duda_bind_query(d, &search_schema, &search);
    e = e ? e : duda_page_read(d, &page);
    struct duda_sql_value q = duda_sql_text(duda_sql_like_escape(d, search.q));
    e = e ? e
          : duda_sql_query_cell(
                d, db(d), &count,
                "SELECT count(*) FROM books WHERE lower(title) LIKE '%' || lower($1) || '%' ESCAPE '!'", q);
    e = e ? e
          : duda_sql_query(d, db(d), &result,
                           "SELECT id, title, author, year FROM books "
                           "WHERE lower(title) LIKE '%' || lower($1) || '%' ESCAPE '!' ORDER BY title, id "
                           "LIMIT $2 OFFSET $3",
                           q, duda_sql_integer(page.size), duda_sql_integer(page.offset));
    if (e)
        return e;
    page.total = count.number;
    e = duda_page_links(d, &page);
    return e ? e : send_books(d, &result, (size_t)page.size);
}

/* Pages with cursors: GET /books/all?after=... Clients that follow the link "next" get each book once, even if
 * others add books in the meantime. */
static int all(struct duda_ctx *d)
{
    enum { PAGE_SIZE = 10 };
    struct duda_sql_result result;
    int64_t after = 0;
    mk_str position;
    int e = duda_cursor_read(d, "after", &position);
    if (!e && position.p && !mk_num_parse_int(position, &after))
        return 400;
    e = e ? e
          : duda_sql_query(d, db(d), &result,
                           "SELECT id, title, author, year FROM books WHERE id > $1 ORDER BY id LIMIT $2",
                           duda_sql_integer(after), duda_sql_integer(PAGE_SIZE + 1));
    if (!e && result.n_rows > PAGE_SIZE) {
        long long last = duda_sql_cell(&result, PAGE_SIZE - 1, 0)->number;
        mk_str cursor = duda_cursor_new(d, duda_sprintf(d, "%lld", last));
        e = duda_link_add(d, "next", duda_url_with_query(d, "after", cursor));
    }
    return e ? e : send_books(d, &result, PAGE_SIZE);
}

static int find_book(struct duda_ctx *d, int64_t id, struct book *book)
{
    return duda_sql_query_row(d, db(d), &book_schema, book,
                              "SELECT id, title, author, year FROM books WHERE id = $1",
                              duda_sql_integer(id));
}

static int64_t id_of(struct duda_ctx *d)
{
    int64_t id = 0;
    (void)duda_param_int(d, "id", &id);
    return id;
}

static int show(struct duda_ctx *d)
{
    struct book book;
    int e = find_book(d, id_of(d), &book);
    return e ? e : duda_send_json_struct(d, &book_schema, &book);
}

/* ---- Changes ---- */

/* Runs after the response, for work that no client should wait for, such as an update of a search index. */
static int index_book(struct duda_ctx *d)
{
    const int64_t *id = duda_task_context(d);
    struct book book;
    int e = find_book(d, *id, &book);
    if (!e)
        duda_log_fields(d, MK_LOG_INFO, "book indexed", DUDA_LOG_FIELD("book", book.id),
                        DUDA_LOG_FIELD("title", book.title));
    return e;
}

static int add(struct duda_ctx *d)
{
    struct duda_sql_result result;
    struct book book = {.id = 0};
    mk_str user = duda_identity(d)->user;
    int e = duda_bind_json(d, &book_schema, &book, NULL);
    e = e ? e
          : duda_sql_query_struct(
                d, db(d), &result,
                "INSERT INTO books (title, author, year) VALUES (:title, :author, :year) RETURNING id",
                &book_schema, &book);
    if (e)
        return e;
    book.id = duda_sql_cell(&result, 0, 0)->number;
    duda_counter_add(d, &books_added, 1, user);
    duda_log_fields(d, MK_LOG_INFO, "book added", DUDA_LOG_FIELD("book", book.id),
                    DUDA_LOG_FIELD("user", user));
    e = duda_after_response(d, index_book, &book.id, sizeof book.id);
    e = e ? e
          : duda_header_set(d, "Location",
                            duda_url_for(d, "book", duda_value_members({"id", duda_value_integer(book.id)})));
    e = e ? e : duda_send_json_struct(d, &book_schema, &book);
    return e ? e : 201;
}

/* ---- Files ---- */

static mk_str cover_path(struct duda_ctx *d)
{
    const struct settings *settings = duda_settings(d);
    return duda_sprintf(d, "%s/%lld.png", settings->covers.p, (long long)id_of(d));
}

/* PUT with the picture as its body: curl -T cover.png */
static int save_cover(struct duda_ctx *d)
{
    struct book book;
    int e = find_book(d, id_of(d), &book);
    e = e ? e : duda_body_save(d, cover_path(d).p);
    return e ? e : 201;
}

/* A download that clients can resume, and need not repeat if it has not changed. */
static int export_csv(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, db(d), &result, "SELECT title, author, year FROM books ORDER BY id");
    e = e ? e : duda_attachment(d, MK_STR("books.csv"));
    e = e ? e : duda_content_type(d, MK_STR("text/csv; charset=utf-8"));
    e = e ? e : duda_make_conditional(d, MK_CONDITIONAL_ETAG | MK_CONDITIONAL_RANGES);
    for (size_t i = 0; i < result.n_rows && !e; i++)
        e = duda_printf(d, "%s;%s;%lld\r\n", duda_sql_cell(&result, i, 0)->text.p,
                        duda_sql_cell(&result, i, 1)->text.p,
                        (long long)duda_sql_cell(&result, i, 2)->number);
    return e;
}

/* ---- Authentication ---- */

/* API keys: the database contains only their hashes. */
static int find_key(struct duda_ctx *d, mk_str hash, struct duda_identity *identity)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, db(d), &result, "SELECT owner FROM keys WHERE hash = $1", duda_sql_text(hash));
    if (e || !result.n_rows)
        return e ? e : -ENOENT;
    identity->user = duda_sql_cell(&result, 0, 0)->text;
    return 0;
}

static const struct duda_token_auth key_auth = DUDA_TOKEN_AUTH(.realm = "books", .find = find_key);

/* For a user with a JSON Web Token of the identity provider. */
static int create_key(struct duda_ctx *d)
{
    struct duda_sql_result result;
    mk_str key, hash;
    int e = duda_token_new(d, "books_", &key, &hash);
    e = e ? e
          : duda_sql_query(d, db(d), &result, "INSERT INTO keys (hash, owner) VALUES ($1, $2)",
                           duda_sql_text(hash), duda_sql_text(duda_identity(d)->user));
    e = e ? e : duda_send_json(d, duda_value_members({"key", duda_value_text(key)}));
    return e ? e : 201;
}

static char admin_hash[DUDA_PASSWORD_SIZE]; /* of this worker; set before it is ready */

static int find_admin(struct duda_ctx *d, mk_str user, mk_str *password_hash, struct duda_identity *identity)
{
    (void)d, (void)identity;
    *password_hash = mk_str_from_c(admin_hash);
    return mk_str_eq(user, MK_STR("admin")) && password_hash->len ? 0 : -ENOENT;
}

static const struct duda_basic_auth admin_auth = DUDA_BASIC_AUTH(.realm = "books", .find = find_admin);

static int delete_keys(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, db(d), &result, "DELETE FROM keys WHERE owner = $1",
                           duda_sql_text(duda_param(d, "owner")));
    return e ? e : 204;
}

static mk_str user_of(struct duda_ctx *d)
{
    const struct duda_identity *identity = duda_identity(d);
    return identity ? identity->user : MK_STR_NULL;
}

/* ---- Readiness ---- */

/* Marks the worker as ready when the database responds. Until then, the path `Ready` of the plugin metrics responds
 * with 503. The task ends early if the worker drains. */
static int prepare(struct duda_ctx *d)
{
    const struct settings *settings = duda_settings(d);
    struct duda_sql_result result;
    int e = settings ? duda_password_hash(d, settings->admin, admin_hash) : 0;
    duda_end_on_drain(d);
    while (!e && duda_sql_query(d, db(d), &result, "SELECT 1"))
        e = duda_sleep(d, 1000);
    return e ? e : duda_set_readiness(duda_worker(d), "database", NULL);
}

static int start(struct mk_worker *worker)
{
    static const struct duda_task task = {.name = "prepare", .fn = prepare};
    struct duda_ctx *started;
    int e = duda_set_readiness(worker, "database", "no connection yet");
    return e ? e : duda_task_spawn(worker, &task, &started);
}

/* ---- Routes ---- */

static const struct duda_cors cors = {.origins = "https://app.example.org http://localhost:3000",
                                      .headers = "Content-Type, X-API-Key, Authorization",
                                      .expose = "Link, X-Total-Count, Location, ETag"};

DUDA_ROUTES(reading, DUDA_AROUND(measure, .data = "read"), DUDA_BEFORE(duda_auto_etag),
            DUDA_GET("/books", list, "Lists books by title.", .query = &search_schema,
                     .response_body = &book_schema, .response_is_list = true),
            DUDA_GET("/books/all", all, "Lists all books.", .response_body = &book_schema,
                     .response_is_list = true),
            DUDA_GET("/books/:id<int>", show, "Shows a book.", .response_body = &book_schema,
                     .responses = "200 404", .url_name = "book"),
            DUDA_GET("/books.csv", export_csv, "Downloads all books.", .response_types = "text/csv"));

DUDA_ROUTES(writing, DUDA_AROUND(measure, .data = "write"),
            DUDA_BEFORE(duda_auth_api_key, .data = &key_auth, .security = "header:X-API-Key"),
            DUDA_POST("/books", add, "Adds a book.", .request_body = &book_schema,
                      .response_body = &book_schema, .responses = "201", .rate = "5/minute",
                      .rate_key = user_of),
            DUDA_PUT("/books/:id<int>/cover", save_cover, "Saves the cover.", .body_max = COVER_MAX,
                     .responses = "201 409"));

DUDA_ROUTES(keys, DUDA_BEFORE(duda_auth_jwt, .security = "jwt"),
            DUDA_BEFORE(duda_require_role, .data = "editor"),
            DUDA_POST("/keys", create_key, "Creates an API key.", .responses = "201"));

DUDA_ROUTES(admin, DUDA_BEFORE(duda_auth_basic, .data = &admin_auth, .security = "basic"),
            DUDA_DELETE("/keys/:owner", delete_keys, "Deletes the API keys of a user.", .responses = "204"));

DUDA_ROUTES(api, DUDA_CORS(&cors), DUDA_ERROR(duda_error_problem), DUDA_GROUP("", reading),
            DUDA_GROUP("", writing), DUDA_GROUP("", keys), DUDA_GROUP("", admin));

DUDA_SERVICE(books, DUDA_START(start), DUDA_GROUP("/api", api, "The API.", .rate = "600/minute"));
