/* SPDX-License-Identifier: Apache-2.0 */
/* The names that examples in the comments of the public headers use but do not define: see check_examples.py.
 * The part before the first section is at file scope; each section is the beginning of the functions around
 * the examples of one header. */
#include <duda.h>
#include <duda/test.h>
#include <errno.h>
#include <fcntl.h>
#include <monkey/clock.h>
#include <monkey/plugin.h>
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct person {
    mk_str name;
    unsigned age;
};
struct user {
    const char *name;
};
extern struct duda_ctx *d;
extern struct mk_config *config;
extern struct mk_request *request;
extern struct mk_response *response;
extern struct mk_server *s;
extern struct mk_worker *worker;
extern const struct duda_schema person_schema;
extern const struct mk_allocator memory;
extern struct mk_buf out;

/* ---- duda/auth.h ---- */
bool knows_device(struct duda_ctx *context, mk_str device);
int find_password_hash(struct duda_ctx *context, mk_str user, mk_str *password_hash);
mk_str stored;
int find_token(struct duda_ctx *context, mk_str token_hash, struct duda_identity *identity);
duda_fn list_orders, delete_order;
/* ---- duda/body.h ---- */
struct issue {
    int64_t owner;
};
extern const struct duda_schema issue_schema;
struct duda_sql_db *db = NULL;
int64_t id = 1;
struct duda_value value;
const char *name = "";
/* ---- duda/cors.h ---- */
duda_fn list_orders, create_order;
/* ---- duda/crypto.h ---- */
mk_str secret;
struct mk_buf claims, text;
mk_str token;
extern const struct duda_jwt_rules rules;
extern const struct duda_jwks *keys;
extern const struct duda_jwt_key *key;
int64_t now = 1, fetched = 0;
mk_str data;
/* ---- duda/csv.h ---- */
struct duda_csv_writer writer;
mk_str text;
void take(unsigned line, unsigned column, mk_str cell);
size_t n_people = 0;
struct person *people = NULL;
/* ---- duda/gzip.h ---- */
mk_str text;
char buf[1000];
int e, more;
ssize_t n, (*read_more)(char *p, size_t cap) = NULL;
mk_str content;
struct duda_gzip_stream *z = NULL;
/* ---- duda/http.h ---- */
struct person person;
struct rate {
    double eur;
};
char buf[1000];
ssize_t n = 0;
struct duda_http_client *http = NULL;
extern const struct duda_schema rate_schema;
struct duda_http_response response;
struct duda_http_request request;
/* ---- duda/i18n.h ---- */
mk_str user;
/* ---- duda/jobs.h ---- */
mk_str payload, address;
duda_job_fn send;
int deliver(struct duda_ctx *context, mk_str text);
/* ---- duda/json.h ---- */
struct person person;
mk_str text;
/* ---- duda/jwt.h ---- */
duda_fn show_me, list_users;
/* ---- duda/kv.h ---- */
mk_str value, old, less, order, order_key;
struct duda_kv *kv = NULL;
/* ---- duda/lock.h ---- */
int import_orders(struct duda_ctx *context);
int price;
const char *id = "";
int read_price(struct duda_ctx *context, const char *order, int *out);
int write_price(struct duda_ctx *context, const char *order, int amount);
/* ---- duda/log.h ---- */
int n_pages = 0;
/* ---- duda/mail.h ---- */
mk_str address, text;
/* ---- duda/memcached.h ---- */
mk_str key, make_page(struct duda_ctx *context);
struct duda_memcached *cache = NULL;
/* ---- duda/memory.h ---- */
FILE *f = NULL;
const char *name = "";
mk_str message;
void answer(struct duda_ctx *context, mk_str text), close_file(void *f);
/* ---- duda/error.h ---- */
struct person person;
duda_fn list_items, home;
/* ---- duda/metrics.h ---- */
int import_orders(struct duda_ctx *context);
/* ---- duda/pagination.h ---- */
int64_t n_found = 0;
mk_str last;
int find_items(struct duda_ctx *context, int64_t limit, int64_t offset, int64_t *n_items);
int find_items_after(struct duda_ctx *context, mk_str position, mk_str *last_position);
/* ---- duda/mime.h ---- */
extern struct duda_mime mime;
/* ---- duda/oidc.h ---- */
int keep_name(struct duda_ctx *context, mk_str user, mk_str claims);
/* ---- duda/postgres.h ---- */
mk_str row;
void forget_price(void *ctx, mk_str name), forget_all_prices(void *ctx), *cache_of(struct mk_worker *w);
int send_all_orders(struct duda_ctx *context, struct duda_sql_db *base);
struct duda_sql_db *db = NULL;
struct duda_sql_result result;
struct duda_postgres_copy *copy = NULL;
/* ---- duda/readiness.h ---- */
struct duda_sql_db *db = NULL;
struct duda_sql_result result;
/* ---- duda/redis.h ---- */
mk_str key, last;
struct duda_redis *redis = NULL;
/* ---- duda/request.h ---- */
int search_items(struct duda_ctx *context, mk_str q), show_items(struct duda_ctx *context);
int filter;
void add_tag(int *filter, mk_str tag);
size_t count = 0;
const char *text = "";
/* ---- duda/response.h ---- */
size_t n = 0;
unsigned *numbers = NULL;
int write_report(struct duda_ctx *context);
/* ---- duda/send.h ---- */
int send_news_after(struct duda_ctx *context, int64_t id);
int e;
size_t mark = 0;
mk_str version, report;
duda_fn home;
mk_str now_text(struct duda_ctx *context);
/* ---- duda/service.h ---- */
duda_fn hello;
duda_fn item;
duda_fn show_log, duda_auth_jwt, duda_require_role, delete_item;
bool is_staff(struct duda_ctx *context);
int begin(struct duda_ctx *context);
void rollback(struct duda_ctx *context);
int commit(struct duda_ctx *context);
duda_fn create, list_prices;
int fetch_prices(struct duda_ctx *context, mk_str *text), keep_prices(mk_str text);
int (*show_user)(struct duda_ctx *);
/* ---- duda/middleware.h ---- */
struct user *user_of_token(struct duda_ctx *context, mk_str token);
/* ---- duda/session.h ---- */
int load_session(struct duda_ctx *context, mk_str id, mk_str *out),
    delete_session(struct duda_ctx *context, mk_str id);
int save_session(struct duda_ctx *context, mk_str id, mk_str data, uint32_t seconds);
duda_fn create_order;
int save_password(struct duda_ctx *context, mk_str password);
mk_str sid;
bool password_is_right(struct duda_ctx *context);
/* ---- duda/smtp.h ---- */
struct job {
    mk_str payload;
} *job = NULL;
/* ---- duda/span.h ---- */
struct order *order = NULL;
int price_order(struct duda_ctx *context, struct order *o);
/* ---- duda/sql.h ---- */
mk_str content;
int e = 0;
struct duda_sql_cursor *cursor = NULL;
duda_sql_transaction_fn move_money;
int transfer = 0;
int64_t id = 0, price = 0;
mk_str who;
struct duda_sql_value from, to;
struct duda_sql_db *db = NULL;
struct duda_sql_result result;
/* ---- duda/store.h ---- */
mk_str make_page(struct duda_ctx *context);
int import_orders(struct duda_ctx *context);
struct duda_store *store = NULL;
mk_str user;
/* ---- duda/subprocess.h ---- */
struct duda_subprocess *subprocess = NULL;
struct duda_subprocess_options options;
mk_str text;
/* ---- duda/task.h ---- */
duda_fn send_welcome;
struct mine {
    struct duda_ctx *task;
    const struct duda_service_ref *owner;
} *mine = NULL;
void remove_old(struct duda_ctx *context, void *ctx);
duda_fn send_welcome;
/* ---- duda/template.h ---- */
const struct duda_template *hello = NULL;
struct mk_buf error;
/* ---- duda/test.h ---- */
struct duda_test_stream *stream = NULL;
size_t n = 0;
struct duda_test_backend *orders = NULL;
struct duda_test *t = NULL;
/* ---- duda/topic.h ---- */
struct duda_websocket *socket = NULL;
struct duda_message message;
int e;
mk_str text;
struct duda_topic_message m;
extern const struct duda_topic news;
extern const struct duda_topic_family rooms;
/* ---- duda/upload.h ---- */
struct shop {
    mk_str photos;
};
struct progress {
    bool is_file;
    size_t n_bytes;
};
const struct mk_upload *file = NULL;
/* ---- duda/value.h ---- */
struct duda_value list, value;
size_t n_people = 0;
struct person *people = NULL;
/* ---- duda/wait.h ---- */
int e = 0, poll_device(struct duda_ctx *context);
char buf[1000];
int fd = 0, n_parts = 0;
void compute_part(int i);
mk_str text;
struct job {
    int n;
};
int fibonacci(void *job);
/* ---- duda/websocket.h ---- */
struct duda_websocket *socket = NULL;
/* ---- monkey/buf.h ---- */
int fd = 0;
unsigned n = 0;
/* ---- monkey/cgi.h ---- */
mk_str output;
struct mk_cgi_options options;
struct mk_upstream_request_options ask;
/* ---- monkey/condition.h ---- */
const struct mk_conf_ctx *ctx = NULL;
/* ---- monkey/config.h ---- */
struct hits {
    uint64_t n;
};
struct cache {
    uint64_t size;
    mk_str folder;
} *cache = NULL;
struct place {
    mk_str name;
};
struct settings {
    mk_str *names;
    size_t n_names;
} *settings = NULL;
mk_str word;
const struct mk_conf_ctx *ctx = NULL;
extern const struct mk_conf_table place_table;
/* ---- monkey/cookie.h ---- */
bool is_tls = true;
mk_str id;
/* ---- monkey/form.h ---- */
struct mk_form form;
const struct mk_upload *file = NULL;
/* ---- monkey/json.h ---- */
struct mk_json_writer json;
struct mk_buf buf;
mk_str name;
size_t n = 0, *sizes = NULL;
/* ---- monkey/json_reader.h ---- */
struct mk_json_reader r;
struct mk_json_error info;
mk_str text, name;
mk_str number;
bool is_integer;
void add_price(mk_str name, mk_str amount);
/* ---- monkey/json_value.h ---- */
mk_str text;
enum mk_verdict (*refuse)(struct mk_response *to, unsigned status, const char *why) = NULL;
/* ---- monkey/meter.h ---- */
struct settings {
    mk_str name;
    uint32_t meter;
} *settings = NULL;
uint64_t *cells;
/* ---- monkey/multipart.h ---- */
char buf[1000];
int e = 0;
void *ctx = NULL;
mk_str boundary;
size_t n, (*read_more)(char *p, size_t cap) = NULL;
struct mk_multipart_ops ops;
struct upload *upload = NULL;
/* ---- monkey/regex.h ---- */
mk_str path;
void use(mk_str part);
/* ---- monkey/request.h ---- */
struct person *person = NULL;
bool knows_key(mk_str key);
bool is_protected(mk_str path);
enum mk_verdict refuse(struct mk_response *to, unsigned status);
void consume(const char *p, size_t n);
/* ---- monkey/request_ref.h ---- */
static const char key;
struct result;
struct job {
    struct mk_request_ref *ref;
    struct result *result;
};
struct result *compute(void);
struct job *start_job(struct mk_request *for_request, struct mk_request_ref *ref);
void free_job(struct job *job);
enum mk_verdict send_result(struct mk_response *to, const struct result *result);
/* ---- monkey/response.h ---- */
size_t len;
mk_str map_of_the_town;
char *make_report(size_t *n);
/* ---- monkey/router.h ---- */
mk_server_fn show_user;
void (*fail)(mk_str why) = NULL, (*call)(void *fn, int64_t id) = NULL;
/* ---- monkey/server.h ---- */
char *certificate = NULL, *key = NULL;
mk_server_fn show_user;
struct mk_server *server = NULL;
int fd;
void send_to_successor(int socket);
struct reading {
    mk_str text;
} *reading = NULL;
struct client {
    struct client *next;
    struct mk_websocket *socket;
} **clients = NULL;
/* ---- monkey/sized.h ---- */
struct mine_options {
    int a, b;
};
/* ---- monkey/spool.h ---- */
void start_with(uint64_t length, int fd);
/* ---- monkey/sse_stream.h ---- */
struct mk_sse_stream *stream = NULL;
struct mk_sse_stream_options options;
/* ---- monkey/stats.h ---- */
uint32_t series;
mk_str country;
/* ---- monkey/str.h ---- */
mk_str path, text;
/* ---- monkey/subprocess.h ---- */
struct mk_subprocess *subprocess = NULL;
void on_end(void *ctx, int status), *ctx = NULL;
struct mk_subprocess *child;
/* ---- monkey/test_client.h ---- */
void check(unsigned status, mk_str body);
/* ---- monkey/text.h ---- */
mk_str name, text;
/* ---- monkey/tunnel.h ---- */
void *ctx = NULL;
struct mk_tunnel_ops ops;
/* ---- monkey/upstream.h ---- */
struct call {
    struct mk_upstream_conn *conn;
    struct mk_upstream_request *upstream;
} *call = NULL;
extern struct mk_upstream *upstream;
struct mk_upstream_conn_options options;
void (*on_ready)(void *ctx, unsigned which) = NULL;
void (*go_on)(struct call *call) = NULL;
void (*fail)(struct call *call, int error) = NULL;
/* ---- monkey/websocket.h ---- */
struct mk_websocket *socket = NULL;
struct member {
    struct member *next;
    struct mk_websocket *socket;
} *first = NULL;
mk_str news;
struct mk_websocket_options options;
void on_message(void *ctx, struct mk_websocket *socket, enum mk_websocket_kind kind, mk_str data);
void on_close(void *ctx, struct mk_websocket *socket, unsigned code, mk_str reason);
/* ---- monkey/worker.h ---- */
size_t n_entries = 0;
int fd = 0;
void *device = NULL, *job = NULL;
void read_events(void *ctx), hash_password(void *ctx), finish_job(void *ctx);
