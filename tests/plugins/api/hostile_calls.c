/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of every header with values that no caller should pass: absent strings, line breaks and NULs, indexes and sizes
 * beyond all limits, descriptors that do not exist. Each call must return the documented error. The query selects the group of
 * calls; the response lists the calls with another result. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/cgi.h>
#include <monkey/format.h>
#include <monkey/json.h>
#include <monkey/plugin.h>
#include <monkey/regex.h>
#include <monkey/spool.h>
#include <monkey/sse_stream.h>
#include <monkey/stats.h>
#include <monkey/subprocess.h>
#include <monkey/text.h>
#include <monkey/tls.h>
#include <monkey/tunnel.h>
#include <monkey/upstream.h>
#include <stdlib.h>
#include <unistd.h>

static _Thread_local struct mk_buf failures;

static void expect(bool ok, int line, const char *text)
{
    if (!ok)
        mk_buf_addf(&failures, "%d: %s\n", line, text);
}
#define EXPECT(condition) expect(condition, __LINE__, #condition)

static const mk_str nul = {"/a\0b", 4}, lines = {"a\r\nb: c", 7}, absent = {NULL, 0}, empty = {"", 0};

/* A string of 1 MB. */
static mk_str large(char c)
{
    static char text[1 << 20];
    memset(text, c, sizeof text);
    return mk_str_of(text, sizeof text);
}

/* ---- The request ---- */

static void read_request(struct mk_request *r)
{
    mk_str name, value;
    EXPECT(!mk_request_header(r, absent).p && !mk_request_header(r, empty).p &&
           !mk_request_header(r, lines).p);
    EXPECT(!mk_request_header_at(r, SIZE_MAX, &name, &value));
    EXPECT(mk_request_header_role(r, SIZE_MAX) == MK_ROLE_NONE);
    EXPECT(!mk_request_path_at(r, SIZE_MAX).p);
    EXPECT(!mk_request_trailer(r, absent).p && !mk_request_trailer_at(r, SIZE_MAX, &name, &value));
    (void)mk_request_accepts_coding(r, absent), (void)mk_request_accepts_coding(r, lines);
    (void)mk_request_accepts_type(r, absent), (void)mk_request_accepts_type(r, lines);
    (void)mk_request_variant_kind(r, SIZE_MAX);
    EXPECT(!mk_request_attached(r, NULL));
    EXPECT(mk_request_media_type(r, absent).p && mk_request_media_type(r, nul).p);
    char room[100];
    struct mk_buf out = mk_buf_fixed(room, sizeof room), full = mk_buf_fixed(NULL, 0);
    mk_request_encode_path(r, absent, &out);
    mk_request_encode_path(r, MK_STR("elsewhere"), &out);
    mk_request_encode_path(r, MK_STR("/x"), &full);
    EXPECT(full.failed);
    EXPECT(!mk_variable_print(absent, r, &out) && !mk_variable_print(nul, r, &out));
    EXPECT(!mk_variable_name(SIZE_MAX));
    EXPECT(!mk_variable_name(1000000));
}

static void open_files(struct mk_request *r)
{
    const mk_str paths[] = {absent,
                            empty,
                            nul,
                            MK_STR("none"),
                            MK_STR("/../etc/passwd"),
                            MK_STR("/a/../../b"),

                            MK_STR("/a//b"),
                            MK_STR("/."),
                            large('/'),
                            large('a')};
    struct mk_file_id id;
    mk_str name, info;
    for (size_t i = 0; i < MK_LEN(paths); i++) {
        int fd = mk_request_open(r, paths[i]);
        if (fd >= 0 || mk_request_stat(r, paths[i], &id) >= 0 || mk_request_stat(r, paths[i], NULL) >= 0)
            mk_buf_addf(&failures, "path %zu is served\n", i);
        mk_str translated = mk_request_translate_path(r, paths[i]);
        if (translated.p && strlen(translated.p) != translated.len)
            mk_buf_addf(&failures, "path %zu is translated\n", i);
        if (fd >= 0)
            close(fd);
    }
    EXPECT(mk_request_find_script(r, absent, &name, &info) == 404);
    EXPECT(mk_request_find_script(r, nul, &name, &info) == 404);
    EXPECT(mk_request_find_script(r, large('.'), &name, &info) == 404);
}

static int *n_freed;

static void count_free(void *data)
{
    (void)data;
    (*n_freed)++;
}

static void change_request(struct mk_request *r)
{
    static int n;
    n_freed = &n;
    const mk_str targets[] = {absent,         empty, MK_STR("none"), MK_STR("http://a/b"), MK_STR("/%zz"),
                              MK_STR("/%00"), nul,   MK_STR("/a b"), MK_STR("/a\r\nb"),    large('a')};
    for (size_t i = 0; i < MK_LEN(targets); i++)
        if (mk_request_rewrite(r, targets[i]) != -EINVAL)
            mk_buf_addf(&failures, "target %zu is taken\n", i);
    EXPECT(!mk_request_alloc(r, SIZE_MAX) && !mk_request_alloc(r, SIZE_MAX / 2) && mk_request_alloc(r, 0));
    EXPECT(mk_request_set_handler_timeout(r, 0) == -EINVAL && mk_request_set_tunnel_timeout(r, 0) == -EINVAL);
    EXPECT(mk_request_set_body_timeout(r, 0) == -EINVAL && mk_request_set_body_timeout(r, MK_FOREVER) == 0);
    EXPECT(mk_request_set_handler_timeout(r, UINT32_MAX) == 0);
    EXPECT(mk_request_set_tunnel_timeout(r, UINT32_MAX) == 0);
    EXPECT(mk_request_set_body_max(r, UINT64_MAX) == 0);
    EXPECT(mk_request_set_user(r, absent) == 0 && mk_request_set_user(r, lines) == 0);
    EXPECT(mk_request_set_user(r, large('u')) == 0 && mk_request_user(r).len == 1 << 20);
    EXPECT(mk_request_set_vhost_name(r, absent) == 0 && mk_request_set_vhost_name(r, nul) == 0);
    EXPECT(mk_request_attach(r, NULL, NULL, NULL) == 0 && mk_request_attach(r, &n, NULL, count_free) == 0);
    EXPECT(mk_request_attach(r, &n, r, count_free) == 0 && mk_request_attached(r, &n) == r);
    mk_request_resume(r);
    mk_request_abort_tunnel(r);
    mk_request_cancel_on_disconnect(r);
    mk_request_log_copy_free(NULL);
    mk_request_log(r, (enum mk_log_level)77, "level 77 \x1b[2J\r\n[error] forged");
    mk_request_log(r, (enum mk_log_level)(MK_LOG_DEBUG + 1), "%.*s", MK_STR_ARG(large('l')));
}

static ssize_t end_body(void *ctx, char *buf, size_t cap)
{
    (void)ctx, (void)buf, (void)cap;
    return 0;
}

/* ---- The response ---- */

static void set_heads(struct mk_request *request, struct mk_response *r)
{
    const unsigned statuses[] = {1, 99, 100, 103, 199, 600, 999, UINT32_MAX};
    for (size_t i = 0; i < MK_LEN(statuses); i++)
        EXPECT(mk_response_set_status(r, statuses[i]) == -EINVAL);
    EXPECT(mk_response_fail(r, 0) == -EINVAL && mk_response_fail(r, 399) == -EINVAL &&
           mk_response_fail(r, 600) == -EINVAL);
    const mk_str names[] = {absent,
                            empty,
                            MK_STR("a b"),
                            MK_STR("a:"),
                            MK_STR("a\n"),
                            nul,
                            lines,
                            MK_STR("Content-Length"),
                            MK_STR("connection"),
                            MK_STR("TRANSFER-ENCODING"),
                            MK_STR("\xc3\xa4")};
    const mk_str values[] = {lines, nul, MK_STR("a\n"), MK_STR("\x7f"), MK_STR("\r")}, x = MK_STR("x");
    for (size_t i = 0; i < MK_LEN(names); i++) {
        const struct mk_header header = {names[i], x};
        EXPECT(mk_response_add_header(r, names[i], x) == -EINVAL);
        EXPECT(mk_response_set_header(r, names[i], x) == -EINVAL);
        EXPECT(mk_response_add_trailer(r, names[i], x) == -EINVAL);
        EXPECT(mk_response_send_1xx(request, r, 103, &header, 1) == -EINVAL);
        EXPECT(!mk_response_header(r, names[i]).p);
        EXPECT(mk_response_remove_header(r, names[i]) == 0);
    }
    for (size_t i = 0; i < MK_LEN(values); i++) {
        const struct mk_header header = {x, values[i]};
        EXPECT(mk_response_add_header(r, x, values[i]) == -EINVAL);
        EXPECT(mk_response_set_header(r, x, values[i]) == -EINVAL);
        EXPECT(mk_response_add_trailer(r, x, values[i]) == -EINVAL);
        EXPECT(mk_response_send_1xx(request, r, 103, &header, 1) == -EINVAL);
    }
    EXPECT(mk_response_add_header(r, x, absent) == 0 && mk_response_header(r, x).p);
    EXPECT(mk_response_set_header(r, x, empty) == 0 && mk_response_remove_header(r, x) == 0);
    EXPECT(mk_response_add_headers(r, absent, NULL, 0) == 0);
    EXPECT(mk_response_add_trailer(r, x, large('t')) == -EMSGSIZE);
    const unsigned interim[] = {0, 99, 100, 101, 200, 404, UINT32_MAX};
    for (size_t i = 0; i < MK_LEN(interim); i++)
        EXPECT(mk_response_send_1xx(request, r, interim[i], NULL, 0) == -EINVAL);
    mk_str name, value;
    EXPECT(!mk_response_header_at(r, SIZE_MAX, &name, &value));
}

static void set_bodies(struct mk_request *request, struct mk_response *r)
{
    static const struct mk_body_source_ops ops = {.read = end_body, .close = count_free};
    static int n;
    n_freed = &n;
    n = 0;
    EXPECT(mk_response_set_body(r, absent) == 0 && mk_response_set_body_nocopy(r, absent) == 0);
    EXPECT(mk_response_set_body_owned(r, MK_STR("x"), NULL, r) == -EINVAL);
    const int fds[] = {-1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < MK_LEN(fds); i++)
        EXPECT(mk_response_set_body_file(r, fds[i], 0, 1) < 0);
    EXPECT(mk_response_set_body_file(r, open("/dev/null", O_RDONLY | O_CLOEXEC), UINT64_MAX, 1) == -EINVAL);
    EXPECT(mk_response_set_body_file(r, open("/dev/null", O_RDONLY | O_CLOEXEC), 1, UINT64_MAX) == -EINVAL);
    EXPECT(mk_response_set_body_file(r, open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY), 0, 1) == -EINVAL);
    EXPECT(mk_response_set_body_source(r, &ops, NULL, -2) == -EINVAL && n == 1);
    EXPECT(mk_response_set_body_source(r, &ops, NULL, INT64_MIN) == -EINVAL && n == 2);
    EXPECT(mk_response_set_body_source(r, NULL, NULL, 1) == -EINVAL);
    EXPECT(mk_response_set_body_source(r, &ops, NULL, INT64_MAX) == 0 &&
           mk_response_set_body(r, empty) == 0 && n == 3);
    EXPECT(!mk_response_file_id(r, &(struct mk_file_id){0}));
    EXPECT(!mk_response_was_sent(r));
    static const struct mk_tunnel_ops tunnel = {.source = {.read = end_body, .close = count_free}};
    EXPECT(mk_response_open_tunnel(request, r, &tunnel, NULL) == -EINVAL && n == 4);
}

/* ---- The worker ---- */

static void ignore(void *ctx)
{
    (void)ctx;
}

static void ignore_fd(void *ctx, unsigned which)
{
    (void)ctx, (void)which;
}

static void ignore_timer(struct mk_timer *timer)
{
    (void)timer;
}

static void ignore_exit(void *ctx, int status)
{
    (void)ctx, (void)status;
}

static const struct mk_plugin foreign = {MK_PLUGIN_HEAD, .name = "foreign"};

static void use_worker(struct mk_worker *w)
{
    struct mk_worker_stats stats;
    const char *reason;
    uint64_t n;
    EXPECT(!mk_worker_stats_at(w, SIZE_MAX, &stats) && !mk_worker_stats_h2_closed(w, SIZE_MAX, &reason, &n));
    EXPECT(!mk_worker_vhost_at(w, SIZE_MAX) && !mk_worker_plugin_at(w, SIZE_MAX));
    EXPECT(!mk_worker_cells(w, UINT32_MAX) && !mk_worker_cells(w, 0));
    EXPECT(mk_worker_set_log_level(w, (enum mk_log_level)77) == -EINVAL);
    mk_worker_log(w, (enum mk_log_level)77, "level 77");
    struct mk_buf full = mk_buf_fixed(NULL, 0);
    mk_worker_print_config(w, &full);
    EXPECT(full.failed);
    mk_worker_reloads_sized(w, NULL, 0, NULL);
    mk_worker_stats_ended_sized(w, NULL, 0);
    EXPECT(mk_worker_send(w, &foreign, 0, MK_STR("x")) == -EINVAL &&
           mk_worker_send(w, NULL, 0, MK_STR("x")) == -EINVAL);
    EXPECT(!mk_worker_data(w, &foreign) && !mk_worker_data(w, NULL));
    mk_worker_set_data(w, &foreign, &full);
    EXPECT(!mk_worker_data(w, &foreign));
    const int fds[] = {-1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < MK_LEN(fds); i++)
        EXPECT(!mk_watcher_new(w, fds[i], MK_READABLE, ignore_fd, NULL));
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    EXPECT(!mk_watcher_new(w, file, MK_READABLE, ignore_fd, NULL));
    close(file);
    mk_watcher_free(NULL);
    mk_watcher_free_closed(NULL);
    mk_deferred_free(NULL);
    EXPECT(!mk_thread_pool_new(w, 0, 1) && !mk_thread_pool_new(w, 65, 1) &&
           !mk_thread_pool_new(w, UINT32_MAX, 1));
    mk_thread_pool_free(NULL);
    struct mk_timer timer = {0};
    mk_timer_stop(&timer);
    mk_timer_init(&timer, ignore_timer);
    mk_timer_set(&timer, w, UINT32_MAX);
    EXPECT(mk_timer_is_set(&timer));
    mk_timer_stop(&timer);
    mk_timer_stop(&timer);
    mk_worker_ref(w);
    mk_worker_unref(w);
}

static void send_messages(struct mk_worker *w, const struct mk_plugin *plugin)
{
    const unsigned to[] = {MK_TO_ALL - 1, INT32_MAX, mk_worker_count(w)};
    for (size_t i = 0; i < MK_LEN(to); i++)
        EXPECT(mk_worker_send(w, plugin, to[i], MK_STR("x")) == -EINVAL);
    EXPECT(mk_worker_send(w, plugin, 0, large('m')) == -EMSGSIZE);
    EXPECT(mk_worker_send(w, plugin, MK_TO_ALL, mk_str_first(large('m'), (32 << 10) + 1)) == -EMSGSIZE);
}

static void start_subprocesses(struct mk_worker *w)
{
    const char *const none[] = {NULL}, *const bare[] = {"true", NULL}, *const good[] = {"/bin/true", NULL};
    char *text = malloc(200000);
    memset(text, 'a', 199999);
    text[199999] = '\0';
    const char *const long_text[] = {"/bin/true", text, NULL};
    const struct mk_subprocess_options options[] = {
        {.argv = none, .envp = none, .in = -1, .out = -1, .err = -1},
        {.argv = bare, .envp = none, .in = -1, .out = -1, .err = -1},
        {.argv = long_text, .envp = none, .in = -1, .out = -1, .err = -1},
        {.argv = good, .envp = none, .in = INT32_MAX, .out = -1, .err = -1},
    };
    for (size_t i = 0; i < MK_LEN(options); i++)
        if (mk_subprocess_start(w, &options[i], ignore_exit, NULL))
            mk_buf_addf(&failures, "subprocess %zu is started\n", i);
    free(text);
    mk_subprocess_kill(NULL);
}

/* ---- Statistics ---- */

static void read_statistics(struct mk_worker *w)
{
    struct mk_stat_registry *r = mk_worker_statistics(w);
    struct mk_stat_metric metrics[MK_STAT_METRICS_MAX];
    struct mk_stat_table table;
    struct mk_stat_field field;
    const mk_str labels[] = {absent, absent, absent};
    const unsigned wild[] = {0, MK_STAT_TABLES_MAX, MK_STAT_TABLES_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < MK_LEN(wild); i++) {
        EXPECT(!mk_stat_table_at(r, wild[i], &table, metrics) && !mk_stat_series(r, wild[i], labels));
        EXPECT(!mk_stat_field_at(r, wild[i], 1, 0, &field) && !mk_stat_next(r, wild[i], 0));
    }
    const uint32_t series[] = {0, MK_STAT_SERIES_MAX + 1, MK_STAT_RETRY};
    unsigned upstreams = mk_stat_find(r, "upstreams");
    for (size_t i = 0; i < MK_LEN(series); i++) {
        EXPECT(!mk_stat_cells(r, series[i], MK_STAT_SERVER) && !mk_stat_sum(r, series[i], 0));
        EXPECT(!mk_stat_label(r, series[i], 0).len);
        (void)mk_stat_field_at(r, upstreams, series[i], 0, &field);
        mk_stat_hide(r, series[i], true);
    }
    EXPECT(!mk_stat_cells(r, 1, MK_STAT_ROWS) && !mk_stat_cells(r, 1, UINT32_MAX));
    EXPECT(!mk_stat_label(r, 1, UINT32_MAX).len && !mk_stat_field_at(r, upstreams, 1, UINT32_MAX, &field));
    (void)mk_stat_sum(r, 1, UINT32_MAX);
    EXPECT(!mk_stat_next(r, upstreams, UINT32_MAX) && !mk_stat_find(r, ""));
    EXPECT(!mk_stat_bucket_end(0, 0) && !mk_stat_bucket_end(MK_STAT_BUCKETS, UINT32_MAX) &&
           !mk_stat_bucket_end(1000, 900));
    EXPECT(!mk_stat_quantile(NULL, 0, 500));
    uint64_t one[MK_STAT_BUCKETS] = {1}, most[MK_STAT_BUCKETS];
    memset(most, 0xff, sizeof most);
    (void)mk_stat_quantile(one, MK_STAT_BUCKETS, UINT32_MAX);
    (void)mk_stat_quantile(most, MK_STAT_BUCKETS, 999);
    mk_stat_add(NULL, 1), mk_stat_set(NULL, 1), mk_stat_observe(NULL, 1), mk_stat_observe_fine(NULL, 1);
}

/* ---- Text ---- */

static void use_buffers(void)
{
    char room[4];
    struct mk_buf b = mk_buf_fixed(room, sizeof room), none = mk_buf_growing(0);
    mk_buf_add(&b, MK_STR("abc"));
    EXPECT(!mk_buf_reserve(&b, SIZE_MAX) && b.failed && mk_str_eq(mk_buf_str(&b), MK_STR("abc")));
    mk_buf_clear(&b);
    mk_buf_add(&b, MK_STR("abc"));
    mk_buf_consume(&b, SIZE_MAX);
    EXPECT(b.len == 0);
    mk_buf_add(&none, absent);
    EXPECT(!none.failed);
    mk_buf_add_char(&none, 'x');
    EXPECT(none.failed && mk_buf_str(&none).len == 0);
    mk_buf_free(&none);
    mk_buf_free(&none);
    struct mk_buf grown = mk_buf_growing(SIZE_MAX);
    mk_buf_add(&grown, MK_STR("x"));
    EXPECT(!mk_buf_reserve(&grown, SIZE_MAX) && grown.failed && grown.len == 1);
    mk_buf_free(&grown);
}

static void use_text(void)
{
    char room[64];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    mk_str rest = absent, word;
    EXPECT(!mk_is_token(absent) && mk_is_header_value(absent) && !mk_header_list_next(&rest, &word));
    mk_html_escape(&out, absent), mk_url_escape(&out, absent), mk_log_escape(&out, absent),
        mk_hex_encode(&out, absent);
    mk_base64_encode(&out, absent);
    EXPECT(mk_url_unescape(&out, absent) && mk_base64_decode(&out, absent) && out.len == 0);
    mk_buf_add(&out, MK_STR("12345"));
    mk_log_escape_to(&out, MK_STR("x"), 0), mk_json_escape_to(&out, MK_STR("x"), 0);
    mk_log_escape_to(&out, MK_STR("x"), 3), mk_json_escape_to(&out, MK_STR("x"), 3);
    EXPECT(out.len == 5 && !out.failed);
    mk_log_escape_to(&out, large('x'), SIZE_MAX);
    EXPECT(mk_consttime_eq(absent, empty) && !mk_consttime_eq(absent, MK_STR("x")));
    char date[MK_DATE_LEN], mac[32];
    int64_t t;
    mk_date_write(date, INT64_MIN), mk_date_write(date, INT64_MAX);
    EXPECT(!mk_date_parse(absent, INT64_MIN, &t) &&
           !mk_date_parse(MK_STR("Sun, 06 Nov 1994 08:49:37 GMX"), 0, &t));
    EXPECT(mk_date_parse(MK_STR("Sunday, 06-Nov-94 08:49:37 GMT"), INT64_MAX, &t));
    EXPECT(mk_date_parse(MK_STR("Sunday, 06-Nov-94 08:49:37 GMT"), INT64_MIN, &t));
    mk_hmac_sha256(absent, absent, mac);
    mk_random(mac, 0);
    struct mk_pattern pattern;
    EXPECT(!mk_pattern_set(&pattern, absent) && !mk_pattern_set(&pattern, MK_STR("x")));
    EXPECT(mk_pattern_set(&pattern, large('*')) && mk_pattern_matches(&pattern, MK_STR("/x")));
    EXPECT(!mk_str_match(absent, MK_STR("?")) && mk_str_match(absent, MK_STR("*")) &&
           mk_str_match(absent, absent));
    EXPECT(!mk_path_may_begin_with_slash(absent));
    EXPECT(mk_str_first(MK_STR("ab"), SIZE_MAX).len == 2 && mk_str_skip(MK_STR("ab"), SIZE_MAX).len == 0);
    EXPECT(mk_str_find(absent, 'a') == MK_STR_NONE && mk_str_find_last(absent, 'a') == MK_STR_NONE);
    EXPECT(mk_str_cmp(absent, empty) == 0 && mk_str_starts(absent, empty) && mk_str_ends(absent, absent));
    uint64_t n;
    EXPECT(!mk_num_parse(absent, &n) && !mk_num_parse(MK_STR("18446744073709551616"), &n) &&
           !mk_num_parse(MK_STR("-1"), &n));
    struct mk_addr addr;
    struct mk_network network;
    EXPECT(!mk_addr_parse(absent, &addr) && !mk_addr_parse(large('1'), &addr) &&
           !mk_network_parse(absent, &network));
    EXPECT(!mk_network_parse(MK_STR("1.2.3.4/33"), &network) &&
           !mk_network_parse(MK_STR("::/129"), &network));
}

static void use_json(void)
{
    char room[200];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    struct mk_json_writer w = mk_json_writer_to(&out);
    mk_json_end_object(&w), mk_json_end_array(&w);
    mk_json_string(&w, absent), mk_json_cstr(&w, NULL), mk_json_raw(&w, absent);
    mk_json_fixed(&w, 1, UINT32_MAX), mk_json_fixed(&w, 1e300, 20), mk_json_double(&w, 1e308);
    mk_json_int(&w, INT64_MIN);
    mk_json_string(mk_json_key_str(&w, absent), large('"'));
    EXPECT(out.failed);
}

static void use_cgi(struct mk_request *r)
{
    struct mk_cgi_head head;
    mk_str rest = absent, name, value;
    unsigned status;
    EXPECT(mk_cgi_head_end(absent, 0) == 0 && mk_cgi_head_end(MK_STR("a\n\n"), SIZE_MAX) == 0);
    EXPECT(!mk_cgi_head_next(&rest, &name, &value) && mk_cgi_head_status_line(absent, &status) == 0);
    (void)mk_cgi_head_read(&head, absent);
    struct mk_header *variables;
    size_t n;
    const struct mk_cgi_options odd = {.length = INT64_MIN};
    EXPECT(mk_cgi_variables(r, &odd, &variables, &n) == 0);
    struct mk_regex_error error;
    EXPECT(!mk_regex_new(MK_STR("("), false, &error) && !mk_regex_new_sized(MK_STR("("), false, NULL, 0));
    struct mk_regex *regex = mk_regex_new(absent, false, &error);
    EXPECT(!regex ||
           (mk_regex_match(regex, absent, NULL) == MK_REGEX_MATCH && !mk_regex_group(regex, absent)));
    mk_regex_free(regex);
    mk_regex_free(NULL);
}

/* ---- Other servers ---- */

static void ask_upstream(struct mk_request *r, struct mk_upstream *upstream)
{
    const struct mk_header good = {MK_STR_INIT("Host"), MK_STR_INIT("a")},
                           bad = {MK_STR_INIT("X"), MK_STR_INIT("a\r\nb: c")},
                           nameless = {MK_STR_INIT(""), MK_STR_INIT("x")}, two[] = {good, good},
                           split[] = {good, bad}, unnamed[] = {good, nameless};
    const struct mk_upstream_request_options options[] = {
        {.method = MK_STR("GET"), .target = MK_STR("/")},
        {.method = absent, .target = MK_STR("/"), .headers = &good, .n_headers = 1},
        {.method = MK_STR("G T"), .target = MK_STR("/"), .headers = &good, .n_headers = 1},
        {.method = MK_STR("GET"), .target = absent, .headers = &good, .n_headers = 1},
        {.method = MK_STR("GET"), .target = MK_STR("/a b"), .headers = &good, .n_headers = 1},
        {.method = MK_STR("GET"), .target = MK_STR("/\r\n"), .headers = &good, .n_headers = 1},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .headers = two, .n_headers = 2},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .headers = split, .n_headers = 2},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .headers = unnamed, .n_headers = 2},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .headers = &good, .n_headers = 1, .length = -5},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .raw_headers = MK_STR("X: y\r\n")},
        {.method = MK_STR("GET"), .target = MK_STR("/"), .raw_headers = MK_STR("Host: a\r\nnone")},
        {.method = MK_STR("GET"), .target = large('/'), .headers = &good, .n_headers = 1},
    };
    for (size_t i = 0; i < MK_LEN(options); i++) {
        struct mk_upstream_request_options o = options[i];
        o.upstream = upstream;
        o.conn.server = i % 2 ? INT32_MAX : INT32_MIN;
        o.conn.tried = i % 3 ? 0 : UINT64_MAX;
        struct mk_upstream_request *q = mk_upstream_request_start(mk_request_worker(r), &o, ignore, NULL);
        char buf[100];
        mk_str name, body;
        size_t n;
        if (!q)
            continue;
        int e = mk_upstream_request_head(q);
        if (e != -EINVAL && e != -E2BIG)
            mk_buf_addf(&failures, "upstream request %zu returns %d\n", i, e);
        EXPECT(mk_upstream_request_error_text(q) && !mk_upstream_request_headers(q, &body, &n));
        EXPECT(!mk_upstream_request_header_at(q, SIZE_MAX, &name, &body) &&
               !mk_upstream_request_header(q, absent).p);
        EXPECT(!mk_upstream_request_trailer_at(q, SIZE_MAX, &name, &body) &&
               !mk_upstream_request_buffered_body(q, &body));
        EXPECT(mk_upstream_request_read(q, buf, sizeof buf) < 0);
        EXPECT(!mk_upstream_request_is_upgraded(q) && !mk_upstream_request_is_local_redirect(q));
        (void)mk_upstream_request_status(q);
        (void)mk_upstream_request_length(q);
        mk_upstream_request_resume(q);
        EXPECT(!mk_upstream_request_is_sending(q));
        mk_upstream_request_log_error(q, r);
        mk_upstream_request_free(q);
    }
    mk_upstream_request_free(NULL);
    mk_upstream_conn_release(NULL, MK_UPSTREAM_CONN_KEEP);
    EXPECT(mk_upstream_status_for_error(0) >= 500 && mk_upstream_status_for_error(INT32_MIN) >= 500);
    (void)mk_upstream_server_id(upstream, UINT32_MAX);
}

/* ---- Streams ---- */

static int n_closed;

static void close_stream(void *ctx, struct mk_sse_stream *stream)
{
    (void)ctx, (void)stream;
    n_closed++;
}

static void open_streams(struct mk_request *request, struct mk_response *r)
{
    static const struct mk_sse_stream_ops none = {0}, ops = {.on_close = close_stream};
    static const struct mk_sse_stream_options zero = {0}, no_close = {.ops = &none},
                                              good = {.ops = &ops,
                                                      .keepalive_ms = UINT32_MAX,
                                                      .queue_max = SIZE_MAX};
    struct mk_sse_stream *s = NULL;
    EXPECT(mk_sse_stream_open(request, r, NULL, NULL, &s) == -EINVAL &&
           mk_sse_stream_open(request, r, &zero, NULL, &s) == -EINVAL);
    EXPECT(mk_sse_stream_open(request, r, &no_close, NULL, &s) == -EINVAL && n_closed == 0);
    EXPECT(mk_sse_stream_open(request, r, &good, NULL, &s) == 0 && mk_response_set_status(r, 200) == 0);
    if (!s)
        return;
    const struct mk_sse_event bad[] = {{.name = lines}, {.id = lines}, {.id = nul}};
    for (size_t i = 0; i < MK_LEN(bad); i++)
        EXPECT(mk_sse_stream_send(s, &bad[i]) == -EINVAL);
    const struct mk_sse_event nothing = {.data = absent};
    EXPECT(mk_sse_stream_send(s, &nothing) == 0 && mk_sse_stream_send_text(s, absent) == 0);
    EXPECT(!mk_sse_stream_last_id(s).p && mk_sse_stream_request(s) == request);
    mk_sse_stream_end(s);
    mk_sse_stream_end(s);
    EXPECT(mk_sse_stream_send(s, &nothing) == -ESHUTDOWN &&
           mk_sse_stream_send_text(s, MK_STR("x")) == -ESHUTDOWN);
}

static void spool_bodies(struct mk_request *r)
{
    mk_spool_queue_free(NULL);
    struct mk_spool_queue *q = mk_spool_queue_new(r, ignore, NULL);
    char buf[10], *at;
    size_t cap;
    EXPECT(q && mk_spool_queue_read(q, buf, sizeof buf) == 0 && mk_spool_queue_reserve(q, &at, &cap) == 0 &&
           cap > 0);
    mk_spool_queue_add(q, 0);
    EXPECT(mk_spool_queue_read(q, buf, sizeof buf) == 0);
    mk_spool_queue_free(q);
    struct mk_spool *s;
    EXPECT(mk_spool_request(r, UINT64_MAX, &s) == 0 && mk_spool_length(s) == 0);
    EXPECT(mk_spool_read(s, buf, sizeof buf, UINT64_MAX) == 0 && mk_spool_read(s, buf, SIZE_MAX, 0) == 0);
    EXPECT(mk_spool_status(0) >= 400 && mk_spool_status(INT32_MIN) >= 400);
}

extern const struct mk_plugin mk_plugin;

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_str group = mk_request_query(request);
    failures = mk_buf_growing(1 << 16);
    if (mk_str_eq(group, MK_STR("request")))
        read_request(request), open_files(request), change_request(request);
    else if (mk_str_eq(group, MK_STR("response")))
        set_heads(request, response), set_bodies(request, response);
    else if (mk_str_eq(group, MK_STR("worker")))
        use_worker(mk_request_worker(request)), send_messages(mk_request_worker(request), &mk_plugin);
    else if (mk_str_eq(group, MK_STR("subprocesses")))
        start_subprocesses(mk_request_worker(request));
    else if (mk_str_eq(group, MK_STR("statistics")))
        read_statistics(mk_request_worker(request));
    else if (mk_str_eq(group, MK_STR("text")))
        use_buffers(), use_text(), use_json(), use_cgi(request);
    else if (mk_str_eq(group, MK_STR("upstream")))
        ask_upstream(request, data);
    else if (mk_str_eq(group, MK_STR("spool")))
        spool_bodies(request);
    else if (mk_str_eq(group, MK_STR("stream")))
        open_streams(request, response);
    mk_buf_add(&failures, MK_STR("end\n"));
    if (mk_str_eq(group, MK_STR("stream"))) {
        mk_request_log(request, MK_LOG_WARN, "stream: %.*s", MK_STR_ARG(mk_buf_str(&failures)));
        mk_buf_free(&failures);
        return MK_DONE;
    }
    int e = mk_response_set_body(response, mk_buf_str(&failures));
    mk_buf_free(&failures);
    return e ? MK_ERROR : MK_DONE;
}

static bool bind(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    const struct mk_upstream_defaults defaults = {.port = 9};
    (void)words;
    return (*data = mk_upstream_find(ctx, MK_STR("127.0.0.1:9"), &defaults));
}

static int load(struct mk_config *config, void **data)
{
    (void)data;
    mk_config_allow_program(config, NULL, NULL, &(struct mk_program){.path = "/"});
    mk_config_enable_body_spool(config);
    return 0;
}

static const struct mk_handler handler = {.name = "hostile", .methods = 0, .handle = handle, .bind = bind};
static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", "websocket", NULL};
MK_PLUGIN(hostile_calls) = {MK_PLUGIN_HEAD, .name = "hostile-calls", .load = load, .handlers = handlers,
                            .needs = needs};
