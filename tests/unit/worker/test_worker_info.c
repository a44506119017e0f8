/* SPDX-License-Identifier: Apache-2.0 */
/* Information for plugins about a worker and its server. */
#include "worker/worker.h"

#include <sys/socket.h>

#include "os/sock.h"
#include "unit/fixtures.h"
#include "unit/setup/fixture.h"

static struct config_fixture c;
static struct mk_worker w;
static struct mk_scoreboard_slot scoreboard[4];
static struct mk_reload_stats history;
static struct mk_sockaddr where;
static int listener, client;
static char last_log[256];

static void write_log(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    (void)log;
    snprintf(last_log, sizeof last_log, "%d %.*s", (int)level, MK_STR_ARG(text));
}

static struct mk_log error_log = {.level = MK_LOG_INFO, .write = write_log};

static void setup(void)
{
    config_setup(&c);
    fd_setup(&client);
    listener_setup(&listener, &where);
    memset(scoreboard, 0, sizeof scoreboard);
    memset(&history, 0, sizeof history);
}

static void teardown(void)
{
    mk_worker_fini(&w);
}

static void serve(const char *text)
{
    config_expect(&c, text);
    const struct mk_worker_options o = {.generation = c.g,
                                        .index = 2,
                                        .workers = 3,
                                        .counters = &scoreboard[1].counters,
                                        .scoreboard = {.at = scoreboard,
                                                       .n = 4,
                                                       .master_pid = 11,
                                                       .started_at = 1000,
                                                       .reload_stats = &history},
                                        .log = &error_log,
                                        .listeners = &(struct mk_worker_socket){.fd = listener},
                                        .n_listeners = 1};
    assert_int_equal(mk_worker_init(&w, &o), 0);
}

static void run_loop(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(mk_loop_run_once(&w.loop, 5), 0);
}

static void send_text(const char *text)
{
    if (client < 0) {
        client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(client, &where.any, where.len), 0);
    }
    assert_int_equal(send(client, text, strlen(text), 0), (ssize_t)strlen(text));
    run_loop(5);
}

#define HOST    "[HOST]\n    DocumentRoot site\n"
#define REQUEST "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"

static void worker_info_index_and_time(void **state)
{
    (void)state;
    serve(HOST);
    assert_int_equal(mk_worker_index(&w), 2);
    assert_int_equal(mk_worker_count(&w), 3);
    assert_int_equal(mk_worker_now_ms(&w), w.loop.now_ms);
    assert_int_equal(mk_worker_now(&w), w.loop.now_unix);
    assert_int_equal(mk_worker_master_pid(&w), 11);
    assert_int_equal(mk_worker_server_started_at(&w), 1000);
}

static void worker_info_messages_go_to_error_log(void **state)
{
    (void)state;
    serve(HOST);
    mk_worker_log(&w, MK_LOG_WARN, "%d\n%s", 7, "x");
    assert_string_equal(last_log, "1 7?x");
    mk_worker_log(&w, MK_LOG_DEBUG, "not wanted");
    assert_string_equal(last_log, "1 7?x");
}

static void worker_info_counts_all_processes(void **state)
{
    (void)state;
    struct mk_worker_stats s;
    /* this worker started earlier */
    scoreboard[0] = (struct mk_scoreboard_slot){.started = 1500, .counters = {.requests = 9}};
    scoreboard[1] = (struct mk_scoreboard_slot){.pid = 21, .started = 2000};
    scoreboard[2] =
        (struct mk_scoreboard_slot){.pid = 22, .started = 3000, .draining = true, .counters = {.dropped = 5}};
    serve(HOST);
    send_text(REQUEST);
    assert_true(mk_worker_stats_at(&w, 0, &s));
    assert_int_equal(s.pid, 0);
    assert_int_equal(s.requests, 9);
    assert_true(mk_worker_stats_at(&w, 1, &s));
    assert_int_equal(s.pid, 21);
    assert_int_equal(s.started, 2000);
    assert_int_equal(s.accepted, 1);
    assert_int_equal(s.open, 1);
    assert_int_equal(s.requests, 1);
    assert_int_equal(s.by_class[2], 1);
    assert_int_equal(s.by_outcome[MK_OUTCOME_OK], 1);
    assert_in_range(s.sent, 50, 1000);
    assert_false(s.draining);
    assert_true(mk_worker_stats_at(&w, 2, &s));
    assert_int_equal(s.dropped, 5);
    assert_true(s.draining);
    assert_false(mk_worker_stats_at(&w, 3, &s));
    scoreboard[3].started = 1;
    assert_true(mk_worker_stats_at(&w, 3, &s));
    assert_false(mk_worker_stats_at(&w, 4, &s));
    assert_false(mk_worker_stats_at(&w, SIZE_MAX, &s));
}

static void worker_info_reports_ended_workers(void **state)
{
    (void)state;
    struct mk_worker_stats s;
    history.past = (struct mk_counters){.accepted = 3, .requests = 8, .by_class = {[4] = 2}, .sent = 1000};
    serve(HOST);
    mk_worker_stats_ended(&w, &s);
    assert_int_equal(s.pid, 0);
    assert_int_equal(s.accepted, 3);
    assert_int_equal(s.requests, 8);
    assert_int_equal(s.by_class[4], 2);
    assert_int_equal(s.sent, 1000);
}

static void worker_info_reports_reloads(void **state)
{
    (void)state;
    struct mk_reloads r;
    struct mk_buf why = mk_buf_growing(1 << 16);
    serve(HOST);
    mk_scoreboard_reload_begin(&history);
    mk_worker_reloads(&w, &r, NULL);
    assert_true(r.in_progress);
    mk_scoreboard_reload_succeeded(&history);
    mk_scoreboard_reload_failed(&history, MK_STR("x.conf:1:1: error"));
    mk_worker_reloads(&w, &r, &why);
    assert_false(r.in_progress);
    assert_int_equal(r.done, 1);
    assert_int_equal(r.failed, 1);
    assert_str(mk_buf_str(&why), "x.conf:1:1: error");
    mk_buf_clear(&why);
    memset(history.why, 'x', sizeof history.why); /* overwritten */
    mk_worker_reloads(&w, &r, &why);
    assert_int_equal(why.len, sizeof history.why);
    mk_buf_free(&why);
}

static void worker_info_without_master_has_no_history(void **state)
{
    (void)state;
    struct mk_worker_stats s;
    struct mk_reloads r;
    serve(HOST);
    w.scoreboard.reload_stats = NULL;
    mk_worker_stats_ended(&w, &s);
    mk_worker_reloads(&w, &r, NULL);
    assert_int_equal(s.requests, 0);
    assert_int_equal(r.done + r.failed, 0);
    assert_false(r.in_progress);
}

/* ---- Connections ---- */

struct seen {
    unsigned n, until;
    struct mk_conn_info last;
};

static bool see(const struct mk_conn_info *info, void *ctx)
{
    struct seen *s = ctx;
    s->last = *info;
    return ++s->n < s->until;
}

static struct seen list_connections(unsigned until)
{
    struct seen s = {.until = until};
    mk_worker_each_conn(&w, see, &s);
    return s;
}

static void worker_info_lists_connections(void **state)
{
    (void)state;
    serve(HOST);
    assert_int_equal(list_connections(9).n, 0);
    send_text(REQUEST);
    struct seen s = list_connections(9);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.last.state, "idle");
    assert_int_equal(s.last.requests, 1);
    assert_int_equal(s.last.peer.ip[12], 127);
    assert_null(s.last.method.p);
    send_text("GET ");
    assert_string_equal(list_connections(9).last.state, "head");
    int first = client;
    client = -1;
    send_text(REQUEST);
    assert_int_equal(list_connections(9).n, 2);
    assert_int_equal(list_connections(1).n, 1); /* sufficient */
    mk_fd_close(&first);
    run_loop(3);
    assert_int_equal(list_connections(9).n, 1);
}

/* The connections that the worker reported while it completed a request. */
static struct seen during;

static void on_record(const struct mk_access_record *record, void *data)
{
    (void)record;
    (void)data;
    during = list_connections(9);
    assert_str(during.last.method, "GET");
    assert_str(during.last.target, "/?x");
    assert_str(during.last.host, "example.org");
}

static void worker_info_lists_requests_in_progress(void **state)
{
    (void)state;
    serve(HOST);
    w.web.on_record = on_record;
    send_text("GET /?x HTTP/1.1\r\nHost: example.org\r\n\r\n");
    assert_int_equal(during.n, 1);
    assert_string_equal(during.last.state, "send");
    assert_int_equal(during.last.requests, 1);
    assert_in_range(during.last.age_ms, 0, 5000);
}

/* ---- Other information ---- */

static void worker_info_cache_can_be_inspected_and_cleared(void **state)
{
    (void)state;
    struct mk_cache_info info;
    serve("[SERVER]\n    OpenFileCacheSize 77\n    OpenFileCacheMemory 1M\n" HOST);
    send_text(REQUEST);
    mk_worker_cache(&w, &info);
    assert_int_equal(info.files_max, 77);
    assert_int_equal(info.memory_max, 1 << 20);
    assert_true(info.files >= 1);
    assert_true(info.memory > 5); /* the cache holds "index" and its prepared heads */
    mk_worker_cache_clear(&w);
    mk_worker_cache(&w, &info);
    assert_int_equal(info.files, 0);
    assert_int_equal(info.memory, 0);
    send_text(REQUEST);
    mk_worker_cache(&w, &info);
    assert_true(info.files >= 1);
}

static void worker_info_enumerates_vhosts(void **state)
{
    (void)state;
    serve(
        "[HOST]\n    DocumentRoot site\n    ServerName a\n[HOST]\n    DocumentRoot site\n    ServerName b\n");
    assert_str(mk_worker_vhost_at(&w, 0)->names[0], "a");
    assert_str(mk_worker_vhost_at(&w, 1)->names[0], "b");
    assert_null(mk_worker_vhost_at(&w, 2));
    assert_null(mk_worker_vhost_at(&w, SIZE_MAX));
}

static void worker_info_prints_configuration(void **state)
{
    (void)state;
    struct mk_buf out = mk_buf_growing(1 << 16);
    serve("[SERVER]\n    KeepAlive off\n" HOST);
    mk_worker_print_config(&w, &out);
    assert_contains(mk_buf_str(&out), "[SERVER]\n");
    assert_contains(mk_buf_str(&out), "[HOST]\n");
    mk_buf_free(&out);
}

static void worker_info_log_lines_are_buffered_and_flushed(void **state)
{
    (void)state;
    char path[PATH_MAX], buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_logfile off = {.fd = -1};
    serve("[SERVER]\n    AccessLog access.log\n" HOST);
    folder_path(&c.folder, "access.log", path);
    mk_log_write(&w, &off, MK_STR("into nowhere"));
    mk_log_write(&w, c.g->access_log, MK_STR("one"));
    mk_log_write(&w, c.g->access_log, MK_STR(""));
    assert_int_equal(mk_file_read_all(path, &text), 0);
    assert_int_equal(text.len, 0);
    for (int i = 0; i < 1000 && !text.len; i++) {
        run_loop(1);
        assert_int_equal(mk_file_read_all(path, &text), 0);
    }
    assert_str(mk_buf_str(&text), "one\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(worker_info_index_and_time, setup, teardown),
        fixture_test(worker_info_messages_go_to_error_log, setup, teardown),
        fixture_test(worker_info_counts_all_processes, setup, teardown),
        fixture_test(worker_info_reports_ended_workers, setup, teardown),
        fixture_test(worker_info_reports_reloads, setup, teardown),
        fixture_test(worker_info_without_master_has_no_history, setup, teardown),
        fixture_test(worker_info_lists_connections, setup, teardown),
        fixture_test(worker_info_lists_requests_in_progress, setup, teardown),
        fixture_test(worker_info_cache_can_be_inspected_and_cleared, setup, teardown),
        fixture_test(worker_info_enumerates_vhosts, setup, teardown),
        fixture_test(worker_info_prints_configuration, setup, teardown),
        fixture_test(worker_info_log_lines_are_buffered_and_flushed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
