/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/config_generation.h"
#include "setup/config_print.h"

#include "unit/setup/fixture.h"
#include "web/redirect.h"
#include "web/static.h"
#include "web/status_handler.h"

static struct config_fixture c;

static void setup(void)
{
    config_setup(&c);
}

#define HOST "[HOST]\n    DocumentRoot site\n"

static void expect_route(const struct mk_vhost *h, size_t i, const char *pattern,
                         const struct mk_handler *handler)
{
    assert_true(i < h->n_routes);
    assert_str(h->routes[i].pattern.text, pattern);
    assert_ptr_equal(h->routes[i].handler, handler);
}

static const struct mk_vhost *host(const char *name)
{
    return mk_vhosts_find(&c.g->hosts, mk_str_from_c(name));
}

/* ---- Valid configurations ---- */

static void config_host_with_a_folder_is_enough(void **state)
{
    (void)state;
    config_expect(&c, HOST);
    assert_int_equal(c.report.n_warnings, 0);
    assert_int_equal(c.g->n_sites, 1);
    assert_int_equal(c.g->listens.n, 1);
    assert_int_equal(mk_sockaddr_port(&c.g->listens.at[0].addr), 2001);
    assert_true(c.g->listens_by_default);
    assert_true(c.g->server.workers >= 1);
    const struct mk_vhost *h = host("anything");
    assert_true(h->root.fd >= 0);
    assert_true(mk_str_ends(mk_str_from_c(h->root.path), MK_STR("/site")));
    assert_int_equal(h->root.how.symlink, MK_SYMLINK_OFF);
    assert_int_equal(h->n_index, 2);
    expect_route(h, 0, "/*", &mk_static);
    assert_int_equal(h->n_routes, 1);
    assert_true(h->ranges && h->precompressed && !h->dot_files && !h->fallback.p);
    assert_true(mk_str_ends(h->written_at, MK_STR("monkey.conf:1")));
}

static void config_hosts_inherit_and_override_settings(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    Ranges off\n    Index a b c\n    FollowSymlinks on\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n"
                      "[HOST]\n    ServerName two *.two\n    DocumentRoot site\n    Ranges on\n"
                      "    Index x\n    FollowSymlinks owner\n    Fallback /index.html\n");
    assert_false(host("one")->ranges);
    assert_int_equal(host("one")->n_index, 3);
    assert_int_equal(host("one")->root.how.symlink, MK_SYMLINK_ON);
    const struct mk_vhost *two = host("x.two");
    assert_ptr_equal(two, host("two"));
    assert_true(two->ranges);
    assert_int_equal(two->n_index, 1);
    assert_str(two->index[0], "x");
    assert_int_equal(two->root.how.symlink, MK_SYMLINK_OWNER);
    assert_str(two->fallback, "index.html");
    assert_ptr_equal(host("nobody"), host("one"));
}

static void config_default_host_can_be_selected(void **state)
{
    (void)state;
    config_expect(&c, "[HOST]\n    ServerName one\n    DocumentRoot site\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n    Default on\n");
    assert_ptr_equal(host("nobody"), host("two"));
}

static void config_hosts_with_the_same_name_have_distinct_ids(void **state)
{
    (void)state;
    static const char *const ids[] = {"one@8001", "one@8002", "ONE@8001#1", "one@8001#2", "other"};
    config_expect(&c, "[HOST]\n    ServerName one\n    DocumentRoot site\n    Listen 127.0.0.1:8001\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n    Listen 127.0.0.1:8002\n"
                      "[HOST]\n    ServerName ONE\n    DocumentRoot site\n    Listen 127.0.0.2:8001\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n    Listen 127.0.0.3:8001\n"
                      "[HOST]\n    ServerName other\n    DocumentRoot site\n    Listen 127.0.0.1:8001\n");
    const struct mk_vhost_config *s = c.g->sites;
    for (size_t i = 0; i < MK_LEN(ids); i++, s = s->next)
        assert_str(s->host.id, ids[i]);
}

static void config_routes_keep_their_order(void **state)
{
    (void)state;
    config_expect(&c, HOST "    Redirect /elsewhere\n[ROUTES]\n    /old/* redirect 302 https://example.org\n"
                           "    *.php status 403\n    /* static\n");
    const struct mk_vhost *h = host("a");
    assert_int_equal(h->n_routes, 4);
    expect_route(h, 0, "/*", &mk_redirect);
    expect_route(h, 1, "/old/*", &mk_redirect);
    expect_route(h, 2, "*.php", &mk_status_handler);
    expect_route(h, 3, "/*", &mk_static);
    const struct mk_redirect *to = h->routes[1].data;
    assert_int_equal(to->status, 302);
    assert_str(to->url, "https://example.org");
    assert_int_equal(((const struct mk_status_handler *)h->routes[2].data)->status, 403);
    assert_str(h->routes[1].written, "redirect 302 https://example.org");
}

static void config_sections_belong_to_the_preceding_host(void **state)
{
    (void)state;
    config_expect(&c, "[HOST]\n    ServerName one\n    DocumentRoot site\n"
                      "[ERROR_PAGES]\n    404 /index.html\n"
                      "[CACHE_CONTROL]\n    *.css max-age=9\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n[ROUTES]\n    /* status 503\n");
    assert_int_equal(host("one")->n_error_pages, 1);
    assert_int_equal(host("one")->error_pages[0].status, 404);
    assert_str(host("one")->error_pages[0].path, "index.html");
    assert_int_equal(host("one")->n_cache_rules, 1);
    assert_str(host("one")->cache_rules[0].value, "max-age=9");
    assert_int_equal(host("two")->n_error_pages + host("two")->n_cache_rules, 0);
    expect_route(host("two"), 0, "/*", &mk_status_handler);
    expect_route(host("one"), 0, "/*", &mk_static);
}

static void config_media_types_are_added(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    DefaultMimeType x/y\n" HOST "[MIMETYPES]\n    foo text/foo\n");
    assert_str(mk_mime_find(&c.g->mime, MK_STR("a.foo")), "text/foo");
    assert_str(mk_mime_find(&c.g->mime, MK_STR("a.bar")), "x/y");
}

static void config_logs_are_opened_once(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    AccessLog access.log\n    ErrorLog error.log\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n");
    assert_int_equal(c.g->logs.n, 2);
    assert_true(c.g->access_log != c.g->error_log);
    assert_true(mk_str_ends(c.g->access_log->where, MK_STR("/access.log")));
    assert_int_equal(faccessat(c.folder.fd, "access.log", F_OK, 0), 0);
    assert_int_equal(faccessat(c.folder.fd, "error.log", F_OK, 0), 0);
    assert_true(c.g->error_log && c.g->error_log->fd >= 0);
}

static void config_limits_are_those_of_the_nearest_section(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    MaxBodySize 1K\n    HandlerTimeout 9\n    MinRate 100\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n    TunnelTimeout 7\n"
                      "[LOCATION]\n    Path /up/* *.iso\n    MaxBodySize unlimited\n    MinRate off\n"
                      "[LOCATION]\n    Path /*\n    MinRateInterval 2\n");
    assert_null(host("one")->limits);
    assert_int_equal(host("one")->n_locations, 0);
    const struct mk_vhost *two = host("two");
    assert_int_equal(c.g->limits.content_max, 1024);
    assert_int_equal(two->limits->content_max, 1024);
    assert_int_equal(two->limits->handler_ms, 9000);
    assert_int_equal(two->limits->tunnel_ms, 7000);
    assert_int_equal(two->n_locations, 2);
    const struct mk_request_limits *up = &two->locations[0].limits, *rest = &two->locations[1].limits;
    assert_int_equal(two->locations[0].n_paths, 2);
    assert_true(up->content_max == UINT64_MAX);
    assert_int_equal(up->rate_ms, 0);
    assert_int_equal(up->tunnel_ms, 7000);
    assert_int_equal(rest->content_max, 1024);
    assert_int_equal(rest->rate_ms, 2000);
    assert_int_equal(rest->rate_bytes, 200);
    assert_false(c.g->logs_access);
}

static void config_hosts_and_locations_have_own_logs(void **state)
{
    (void)state;
    config_expect(&c, "[SERVER]\n    AccessLog all.log\n"
                      "[HOST]\n    ServerName one\n    DocumentRoot site\n"
                      "[LOCATION]\n    Path /quiet\n    AccessLog off\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n    AccessLog two.log\n"
                      "[LOCATION]\n    Path /all\n    AccessLog all.log\n    AccessLogFormat json\n"
                      "[LOCATION]\n    Path /two\n    MaxBodySize 1\n");
    const struct mk_vhost *one = host("one"), *two = host("two");
    assert_null(one->limits);
    assert_int_equal(one->locations[0].limits.log->kind, MK_LOGFILE_OFF);
    assert_true(mk_str_ends(two->limits->log->where, MK_STR("/two.log")));
    assert_ptr_equal(two->locations[0].limits.log, c.g->access_log);
    assert_int_equal(two->locations[0].limits.log_format, 1);
    assert_ptr_equal(two->locations[1].limits.log, two->limits->log);
    assert_true(c.g->logs_access);
}

static void config_command_line_overrides_it(void **state)
{
    (void)state;
    static const char *const listens[] = {"8080", "[::1]:81", NULL};
    c.overrides = (struct mk_config_overrides){
        .listens = listens, .listen_host = MK_STR("127.0.0.1"), .workers = 7, .pid_file = "/run/x.pid"};
    config_expect(&c,
                  "[SERVER]\n    Listen 1\n    Listen 2\n    Listen 3\n    Workers 2\n    PidFile y\n" HOST);
    char buffer[MK_SOCKADDR_TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(c.g->listens.n, 2);
    mk_sockaddr_format(&c.g->listens.at[0].addr, &text);
    assert_str(mk_buf_str(&text), "127.0.0.1:8080");
    assert_int_equal(c.g->server.workers, 7);
    assert_str(c.g->server.pid_file, "/run/x.pid");
    assert_false(c.g->listens_by_default);
}

static void config_can_be_a_folder(void **state)
{
    (void)state;
    folder_add_folder(&c.folder, "sites");
    folder_add(&c.folder, "monkey.conf", MK_STR("[SERVER]\n    Workers 3\n"));
    folder_add(&c.folder, "sites/a", MK_STR("[HOST]\n    ServerName a\n    DocumentRoot ../site\n"));
    folder_add(&c.folder, "sites/default", MK_STR("[HOST]\n    ServerName d\n    DocumentRoot ../site\n"));
    folder_add(&c.folder, "monkey.mime", MK_STR("[MIMETYPES]\n    foo text/foo\n"));
    assert_true(config_load_file(&c, ""));
    assert_int_equal(c.g->n_sites, 2);
    assert_int_equal(c.g->server.workers, 3);
    assert_ptr_equal(host("nobody"), host("d"));
    assert_str(mk_mime_find(&c.g->mime, MK_STR("a.foo")), "text/foo");
}

static void config_can_be_a_text(void **state)
{
    (void)state;
    char text[256];
    snprintf(text, sizeof text, "[HOST]\n    DocumentRoot %s/site\n", c.folder.path);
    const struct mk_config_source origin = {.reader = &mk_config_reader, .text = mk_str_from_c(text)};
    c.g = mk_config_generation_load(&origin, &c.arena, &c.report);
    assert_non_null(c.g);
    assert_true(mk_str_starts(host("a")->written_at, MK_STR("command line:1")));
}

static void config_printed_can_be_loaded(void **state)
{
    (void)state;
    struct mk_buf once = mk_buf_growing(1 << 18), again = mk_buf_growing(1 << 18);
    config_expect(&c, "[SERVER]\n    Listen 127.0.0.1:8080\n    AccessLog access.log\n    HeaderTimeout 3\n"
                      "    MaxBodySize 5M\n"
                      "[HOST]\n    ServerName one *.one\n    DocumentRoot site\n    UserDir off\n"
                      "[ROUTES]\n    /x redirect 301 https://example.org\n    /* static\n"
                      "[ERROR_PAGES]\n    404 index.html\n[CACHE_CONTROL]\n    *.css no-cache, private\n"
                      "[HOST]\n    ServerName two\n    DocumentRoot site\n    Default on\n"
                      "[MIMETYPES]\n    foo text/foo\n");
    mk_config_print_effective(c.g, &once);
    folder_add(&c.folder, "printed.conf", mk_buf_str(&once));
    if (!config_load_file(&c, "printed.conf")) {
        char buffer[512];
        fail_msg("%.*s", MK_STR_ARG(config_problem(&c, 0, buffer)));
    }
    mk_config_print_effective(c.g, &again);
    assert_true(mk_str_eq(mk_buf_str(&once), mk_buf_str(&again)));
    mk_buf_free(&once);
    mk_buf_free(&again);
}

/* ---- Invalid configurations ---- */

static void config_mistakes_are_reported_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"", "monkey.conf:0: there is no [HOST]"},
        {"[SERVER]\n    Workers 1\n", "monkey.conf:0: there is no [HOST]"},
        {"[HOST]\n    ServerName a\n", "monkey.conf:1: this [HOST] has no DocumentRoot"},
        {"[HOST]\n    DocumentRoot nothing\n", "monkey.conf:2: cannot serve the folder `"},
        {"[HOST]\n    DocumentRoot site/index.html\n", "monkey.conf:2: cannot serve the folder `"},
        {"[ROUTES]\n    /* static\n" HOST, "monkey.conf:1: [ROUTES] belongs below a [HOST]"},
        {HOST "[ROUTES]\n    /a static\n    b static\n", "monkey.conf:5: `b` is not a pattern"},
        {HOST "[ROUTES]\n    /a statik\n", "monkey.conf:4: there is no handler `statik`"},
        {HOST "[ROUTES]\n    /a static now\n", "monkey.conf:4: the handler `static` expects nothing"},
        {HOST "[ROUTES]\n    /a status 206\n", "monkey.conf:4: the handler `status` expects STATUS [TEXT]"},
        {HOST "[ROUTES]\n    /a status 301\n", "monkey.conf:4: the handler `status` expects STATUS [TEXT]"},
        {HOST "[ROUTES]\n    /a status 204 x\n", "monkey.conf:4: the handler `status` expects STATUS [TEXT]"},
        {HOST "[ROUTES]\n    /a status 200 \"x\n",
         "monkey.conf:4: the handler `status` expects STATUS [TEXT]"},
        {HOST "[ROUTES]\n    /a status\n", "monkey.conf:4: the handler `status` expects STATUS"},
        {HOST "[ROUTES]\n    /a redirect 304 /\n",
         "monkey.conf:4: the handler `redirect` expects STATUS URL"},
        {HOST "[ROUTES]\n    /a redirect 301\n", "monkey.conf:4: the handler `redirect` expects"},
        {HOST "[ERROR_PAGES]\n    200 /x\n",
         "monkey.conf:4: `200` is neither a status from 400 to 599 nor `4xx` or `5xx`"},
        {HOST "[ERROR_PAGES]\n    3xx /x\n", "monkey.conf:4: `3xx` is neither a status"},
        {HOST "[ERROR_PAGES]\n    5xx /index.html\n    5XX /index.html\n",
         "monkey.conf:5: there is already a page for 5XX"},
        {HOST "[ERROR_PAGES]\n    404 ../x\n", "monkey.conf:4: `../x` is not a file beneath"},
        {HOST "[CACHE_CONTROL]\n    css x\n", "monkey.conf:4: `css` is not a pattern"},
        {HOST "    Fallback ../x\n", "monkey.conf:3: `../x` is not a file beneath"},
        {HOST "    Index ok ../x\n", "monkey.conf:3: `../x` is not a file in a folder"},
        {HOST "    ServerName a*b\n", "monkey.conf:3: `a*b` is not a host name"},
        {HOST "    ServerName a/b\n", "monkey.conf:3: `a/b` is not a host name"},
        {HOST "    ServerName one\n" HOST "    ServerName ONE\n",
         "monkey.conf:4: another [HOST] already has the ServerName `ONE`"},
        {HOST "    Default on\n" HOST "    ServerName b\n    Default on\n",
         "monkey.conf:7: another [HOST] is already the"},
        {HOST "[MIMETYPES]\n    foo text\n", "monkey.conf:4: `text` is not a media type"},
        {"[SERVER]\n    Listen 80\n    Listen 0.0.0.0:80\n" HOST,
         "monkey.conf:3: `0.0.0.0:80` already has a Listen"},
        {"[SERVER]\n    User no-such-user\n" HOST, "monkey.conf:2: there is no user `no-such-user`"},
        {"[SERVER]\n    Group daemon\n" HOST, "monkey.conf:2: Group needs a User"},
        {"[SERVER]\n    AccessLog no/such/folder\n" HOST, "monkey.conf:2: cannot open the log `"},
        {"[SERVER]\n    ErrorLog off\n" HOST, "monkey.conf:2: the error log cannot be off"},
        {"[SERVER]\n    DefaultMimeType text\n" HOST, "monkey.conf:2: `text` is not a media type"},
        {"[SERVER]\n    MaxURISize 2K\n    MaxHeaderSize 1K\n" HOST, "monkey.conf:2: MaxURISize exceeds"},
        {"[SERVER]\n    Workerz 1\n" HOST, "monkey.conf:2: "},
        {"[SERVER]\n    Workers many\n" HOST, "monkey.conf:2: "},
        {"[NOTHING]\n    a b\n" HOST, "monkey.conf:1: "},
        {HOST "[HANDLERS]\n    Match /x[ static\n", "monkey.conf:4: `/x[` is not a regular expression"},
        {HOST "[HANDLERS]\n    Mach /x static\n", "monkey.conf:4: expected `Match REGEX HANDLER"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        config_expect_rejected(&c, cases[i].text, cases[i].problem);
}

static void config_all_mistakes_are_reported_at_once(void **state)
{
    (void)state;
    char buffer[512];
    assert_false(config_load(&c,
                             "[SERVER]\n    Workerz 1\n    HeaderTimeout 1O\n"
                             "[HOST]\n    DocumentRoot nothing\n[ROUTES]\n    x static\n    /y unknown\n"));
    assert_int_equal(c.report.n_errors, 5);
    static const unsigned lines[] = {2, 3, 5, 7, 8};
    const struct mk_conf_problem *p = c.report.first;
    for (size_t i = 0; i < MK_LEN(lines); i++, p = p->next)
        if (p->at.line != lines[i])
            fail_msg("%.*s", MK_STR_ARG(config_problem(&c, i, buffer)));
}

static void config_missing_file_is_reported(void **state)
{
    (void)state;
    assert_false(config_load_file(&c, "nothing.conf"));
    assert_true(c.report.n_errors > 0);
}

static void config_report_outlives_the_configuration(void **state)
{
    (void)state;
    struct mk_buf out = mk_buf_growing(1 << 16);
    assert_false(config_load(&c, "[SERVER]\n    HeaderTimeout 1O\n" HOST));
    folder_add(&c.folder, "monkey.conf", MK_STR("other"));
    mk_conf_report_print(&c.report, &out);
    assert_contains(mk_buf_str(&out), "HeaderTimeout 1O");
    mk_buf_free(&out);
}

static void config_load_leaks_no_descriptor(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    for (int i = 0; i < 3; i++) {
        config_expect(&c, "[SERVER]\n    AccessLog access.log\n" HOST);
        assert_false(config_load(&c, "[SERVER]\n    AccessLog access.log\n" HOST "[ROUTES]\n    x y\n"));
    }
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

/* ---- Monkey 1.6 ---- */

static void config_unavailable_handlers_answer_501(void **state)
{
    (void)state;
    config_expect(&c, HOST "[HANDLERS]\n    Match /.*\\.php fastcgi\n    Match /l/ dirlisting\n"
                           "    Match /s/ static\n");
    const struct mk_vhost *h = host("a");
    assert_int_equal(c.report.n_warnings, 2);
    assert_ptr_equal(h->routes[0].handler, &mk_status_handler);
    assert_int_equal(((const struct mk_status_handler *)h->routes[0].data)->status, 501);
    assert_non_null(h->routes[0].regex);
    assert_true(mk_route_matches(&h->routes[0], MK_STR("/x/A.PHP")));
    assert_ptr_equal(h->routes[1].handler, &mk_status_handler);
    assert_ptr_equal(h->routes[2].handler, &mk_static);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(config_host_with_a_folder_is_enough, setup),
        fixture_test(config_hosts_inherit_and_override_settings, setup),
        fixture_test(config_default_host_can_be_selected, setup),
        fixture_test(config_hosts_with_the_same_name_have_distinct_ids, setup),
        fixture_test(config_routes_keep_their_order, setup),
        fixture_test(config_sections_belong_to_the_preceding_host, setup),
        fixture_test(config_media_types_are_added, setup),
        fixture_test(config_logs_are_opened_once, setup),
        fixture_test(config_limits_are_those_of_the_nearest_section, setup),
        fixture_test(config_hosts_and_locations_have_own_logs, setup),
        fixture_test(config_command_line_overrides_it, setup),
        fixture_test(config_can_be_a_folder, setup),
        fixture_test(config_can_be_a_text, setup),
        fixture_test(config_printed_can_be_loaded, setup),
        fixture_test(config_mistakes_are_reported_with_their_line, setup),
        fixture_test(config_all_mistakes_are_reported_at_once, setup),
        fixture_test(config_missing_file_is_reported, setup),
        fixture_test(config_report_outlives_the_configuration, setup),
        fixture_test(config_load_leaks_no_descriptor, setup),
        fixture_test(config_unavailable_handlers_answer_501, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
