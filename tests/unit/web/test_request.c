/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request_type.h"

#include <errno.h>

#include "unit/web/site_case.h"

static void request_exposes_head(void **state)
{
    (void)state;
    struct mk_exchange *x = site_request(&site, "POST /a%20b/../c/d?x=%20&y HTTP/1.1\r\n"
                                                "Host: Example.org:8080\r\n"
                                                "Content-Length: 3\r\n"
                                                "X-One: 1\r\n"
                                                "x-one: 2\r\n\r\n");
    const struct mk_request *r = &x->request;
    assert_int_equal(mk_request_method(r), MK_METHOD_POST);
    assert_str(mk_request_method_text(r), "POST");
    assert_int_equal(mk_request_version(r), 11);
    assert_str(mk_request_target(r), "/a%20b/../c/d?x=%20&y");
    assert_str(mk_request_path(r), "/c/d");
    assert_int_equal(mk_request_path(r).p[4], '\0');
    assert_str(mk_request_query(r), "x=%20&y");
    assert_str(mk_request_host(r), "Example.org");
    assert_str(mk_request_header(r, MK_STR("X-ONE")), "1");
    assert_str(mk_request_header(r, MK_STR("content-length")), "3");
    assert_null(mk_request_header(r, MK_STR("x-two")).p);
    assert_null(mk_request_header(r, MK_STR("")).p);
    mk_exchange_free(x);
}

static void request_headers_are_enumerated_in_order(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"Host", "a"}, {"B", "1"}, {"A", ""}, {"B", "2"}};
    struct mk_exchange *x = site_get(&site, "/", "B: 1\r\nA:\r\nB: 2\r\n");
    mk_str name, value;
    size_t i = 0;
    for (; mk_request_header_at(&x->request, i, &name, &value); i++) {
        assert_true(i < MK_LEN(expected));
        assert_str(name, expected[i][0]);
        assert_str(value, expected[i][1]);
        assert_non_null(value.p);
    }
    assert_int_equal(i, MK_LEN(expected));
    assert_false(mk_request_header_at(&x->request, SIZE_MAX, &name, &value));
    mk_exchange_free(x);
}

static void expect_headers(const struct mk_request *r, const char *expected)
{
    char buf[512];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(r, i, &name, &value); i++)
        mk_buf_addf(&out, "%.*s=%.*s%s ", MK_STR_ARG(name), MK_STR_ARG(value),
                    mk_request_header_role(r, i) == MK_ROLE_SERVER ? "*" : "");
    assert_str(mk_buf_str(&out), expected);
}

static void request_headers_can_be_changed(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/", "A: 1\r\nX-Real-IP: 6.6.6.6\r\nUser-Agent: c\r\nA: 2\r\n");
    struct mk_request *r = &x->request;
    assert_int_equal(mk_request_set_header(r, MK_STR("x-real-ip"), MK_STR(" 1.2.3.4 ")), 0);
    assert_int_equal(mk_request_set_header(r, MK_STR("User-Agent"), MK_STR("s")), 0);
    assert_int_equal(mk_request_add_header(r, MK_STR("User-Agent"), MK_STR("t")), 0);
    assert_int_equal(mk_request_remove_header(r, MK_STR("a")), 0);
    assert_int_equal(mk_request_remove_header(r, MK_STR("none")), 0);
    expect_headers(r, "Host=a x-real-ip=1.2.3.4* User-Agent=s* User-Agent=t* ");
    assert_str(mk_request_header(r, MK_STR("USER-AGENT")), "s");
    assert_null(mk_request_header(r, MK_STR("A")).p);
    assert_str(mk_request_received_header(r, MK_STR("A")), "1");
    assert_str(mk_request_received_header(r, MK_STR("User-Agent")), "c");
    mk_str value;
    unsigned at = 0;
    assert_true(mk_headers_next(&r->fields, MK_HEADER_USER_AGENT, &at, &value));
    assert_true(mk_headers_next(&r->fields, MK_HEADER_USER_AGENT, &at, &value));
    assert_str(value, "t");
    assert_false(mk_headers_next(&r->fields, MK_HEADER_USER_AGENT, &at, &value));
    mk_request_restore_headers(r);
    expect_headers(r, "Host=a A=1 X-Real-IP=6.6.6.6 User-Agent=c A=2 ");
    mk_exchange_free(x);
}

static void request_change_replaces_confusable_names(void **state)
{
    (void)state;
    struct mk_exchange *x =
        site_get(&site, "/", "X_Tenant: 1\r\nX.Tenant: 2\r\nX-Tenants: 3\r\nProxy: 4\r\n");
    struct mk_request *r = &x->request;
    assert_int_equal(mk_request_set_header(r, MK_STR("X-Tenant"), MK_STR("t")), 0);
    assert_int_equal(mk_request_remove_header(r, MK_STR("proxy")), 0);
    expect_headers(r, "Host=a X-Tenants=3 X-Tenant=t* ");
    mk_exchange_free(x);
}

static void request_change_rejects_framing_and_bad_values(void **state)
{
    (void)state;
    static const char *const never[] = {"Content-Length",
                                        "transfer-encoding",
                                        "Connection",
                                        "Keep-Alive",
                                        "TE",
                                        "Upgrade",
                                        "Expect",
                                        "Host",
                                        "Trailer",
                                        "HTTP2-Settings",
                                        "Proxy-Connection",
                                        "Max-Forwards",
                                        "Sec-WebSocket-Key",
                                        "",
                                        "a b",
                                        "a:"};
    static const char *const only_removed[] = {"Destination", "Via", "Client-Cert",
                                               "Proxy",       "X_A", "Content_Length"};
    struct mk_exchange *x = site_get(&site, "/", "A: 1\r\n");
    struct mk_request *r = &x->request;
    for (size_t i = 0; i < MK_LEN(never); i++) {
        assert_int_equal(mk_request_set_header(r, mk_str_from_c(never[i]), MK_STR("1")), -EINVAL);
        assert_int_equal(mk_request_add_header(r, mk_str_from_c(never[i]), MK_STR("1")), -EINVAL);
        assert_int_equal(mk_request_remove_header(r, mk_str_from_c(never[i])), -EINVAL);
    }
    for (size_t i = 0; i < MK_LEN(only_removed); i++) {
        assert_int_equal(mk_request_set_header(r, mk_str_from_c(only_removed[i]), MK_STR("1")), -EINVAL);
        assert_int_equal(mk_request_remove_header(r, mk_str_from_c(only_removed[i])), 0);
    }
    assert_int_equal(mk_request_set_header(r, MK_STR("B"), MK_STR("1\r\nC: 2")), -EINVAL);
    assert_int_equal(mk_request_set_header(r, MK_STR("B"), MK_STR("1\0")), -EINVAL);
    expect_headers(r, "Host=a A=1 ");
    mk_exchange_free(x);
}

static void request_change_limits_the_number_of_headers(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/", "A: 1\r\n");
    int e = 0;
    unsigned n = 2;
    while (!(e = mk_request_add_header(&x->request, MK_STR("B"), MK_STR("1"))))
        n++;
    assert_int_equal(e, -E2BIG);
    assert_int_equal(n, 254);
    assert_int_equal(mk_request_set_header(&x->request, MK_STR("B"), MK_STR("2")), 0);
    expect_headers(&x->request, "Host=a A=1 B=2* ");
    mk_exchange_free(x);
}

static void request_missing_values_are_absent(void **state)
{
    (void)state;
    struct mk_exchange *x = site_request(&site, "BREW / HTTP/1.0\r\n\r\n");
    const struct mk_request *r = &x->request;
    assert_int_equal(mk_request_method(r), MK_METHOD_UNKNOWN);
    assert_str(mk_request_method_text(r), "BREW");
    assert_int_equal(mk_request_version(r), 10);
    assert_null(mk_request_host(r).p);
    assert_null(mk_request_query(r).p);
    assert_int_equal(mk_request_length(r), 0);
    assert_null(mk_request_data(r));
    mk_exchange_free(x);
    x = site_get(&site, "/?", "");
    assert_non_null(mk_request_query(&x->request).p);
    assert_int_equal(mk_request_query(&x->request).len, 0);
    mk_exchange_free(x);
}

static void request_absolute_target_sets_host(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "http://other.example:81/p?q", "");
    assert_str(mk_request_host(&x->request), "other.example");
    assert_str(mk_request_path(&x->request), "/p");
    assert_int_equal(mk_request_path(&x->request).p[2], 0);
    assert_str(mk_request_query(&x->request), "q");
    assert_str(mk_request_target(&x->request), "http://other.example:81/p?q");
    mk_exchange_free(x);
    x = site_get(&site, "http://other.example", "");
    assert_str(mk_request_path(&x->request), "/");
    mk_exchange_free(x);
}

static void request_targets_without_path(void **state)
{
    (void)state;
    struct mk_exchange *x = site_request(&site, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_str(mk_request_path(&x->request), "*");
    mk_exchange_free(x);
    x = site_request(&site, "CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_str(mk_request_path(&x->request), "");
    assert_str(mk_request_host(&x->request), "a.example");
    mk_exchange_free(x);
}

static void request_raw_target_keeps_encoding(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/", "/"},
        {"/?", "/?"},
        {"/a%20b/c//d?x=%20&y?z", "/a%20b/c//d?x=%20&y?z"},
        {"/a%2eb/%61/.c/..d", "/a%2eb/%61/.c/..d"},
        /* Paths that programs interpret in different ways keep their escapes. */
        {"/a%20b/../c%3B;//d?x=%20&y?z", "/c%3B;/d?x=%20&y?z"},
        {"/%2e/a%2Fb", "/a%2Fb"},
        {"/a/.", "/a/"},
        {"/a/%2E%2e", "/"},
        {"/a\\b", "/a%5Cb"},
        {"//a//b", "/a//b"},
        {"///?x", "/?x"},
        {"http://other.example//a/./b?x", "/a/b?x"},
        {"http://other.example:81/p%41?q", "/p%41?q"},
        {"http://other.example", "/"},
        {"http://other.example?q=1", "/?q=1"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_exchange *x = site_get(&site, cases[i][0], "");
        assert_str(mk_request_raw_target(&x->request), cases[i][1]);
        assert_str(mk_request_target(&x->request), cases[i][0]);
        mk_exchange_free(x);
    }
    struct mk_exchange *x = site_request(&site, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_str(mk_request_raw_target(&x->request), "*");
    mk_exchange_free(x);
    x = site_request(&site, "CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_null(mk_request_raw_target(&x->request).p);
    mk_exchange_free(x);
}

static void request_rewrite_changes_raw_target(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/old?a=1", "");
    struct mk_request *r = &x->request;
    assert_int_equal(mk_request_rewrite(r, MK_STR("/new%2Fer?b=%32")), 0);
    assert_str(mk_request_raw_target(r), "/new%2Fer?b=%32");
    assert_int_equal(mk_request_rewrite(r, MK_STR("/folder/")), 0);
    assert_str(mk_request_raw_target(r), "/folder/");
    assert_int_equal(mk_request_rewrite(r, MK_STR("/folder/?c")), 0);
    /* sets the path of an index file, for example */
    assert_true(mk_request_target_set_path(r, MK_STR("/folder/in dex?.html")));
    assert_str(mk_request_raw_target(r), "/folder/in%20dex%3F.html?c");
    assert_str(mk_request_target(r), "/old?a=1");
    mk_exchange_free(x);
}

static void request_has_client_address(void **state)
{
    (void)state;
    struct mk_sockaddr a;
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_str(mk_request_client_text(&x->request), "unix:");
    assert_int_equal(mk_sockaddr_parse(MK_STR("192.0.2.7:1"), MK_STR(""), &a), 0);
    mk_sockaddr_to_addr(&a, &site.peer);
    assert_str(mk_request_client_text(&x->request), "192.0.2.7");
    mk_exchange_free(x);
}

/* ---- Operations of the protocol ---- */

struct protocol {
    unsigned n_reads, n_resumes;
};

static ssize_t on_read(void *ctx, char *buffer, size_t cap)
{
    ((struct protocol *)ctx)->n_reads++;
    assert_true(cap >= 2);
    memcpy(buffer, "ok", 2);
    return 2;
}

static void on_resume(void *ctx)
{
    ((struct protocol *)ctx)->n_resumes++;
}

static mk_err on_local(void *ctx, struct mk_addr *out)
{
    (void)ctx;
    *out = (struct mk_addr){.port = 8080};
    return 0;
}

static const struct mk_request_ops protocol_ops = {.read = on_read, .resume = on_resume, .local = on_local};

static void request_body_is_read_from_protocol(void **state)
{
    (void)state;
    struct protocol p = {0};
    char buffer[8];
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_request *r = &x->request;
    assert_int_equal(mk_request_read(r, buffer, sizeof buffer), 0);
    mk_request_resume(r);
    r->ops = &protocol_ops;
    r->ops_ctx = &p;
    /* the length is 0, so the source is not read */
    assert_int_equal(mk_request_read(r, buffer, sizeof buffer), 0);
    assert_int_equal(p.n_reads, 0);
    r->length = 5;
    assert_int_equal(mk_request_length(r), 5);
    assert_int_equal(mk_request_read(r, buffer, sizeof buffer), 2);
    r->length = MK_REQUEST_LENGTH_UNKNOWN;
    assert_int_equal(mk_request_length(r), -1);
    assert_int_equal(mk_request_read(r, buffer, sizeof buffer), 2);
    assert_int_equal(p.n_reads, 2);
    mk_request_resume(r);
    assert_int_equal(p.n_resumes, 1);
    mk_exchange_free(x);
}

static void request_read_with_empty_buffer_is_invalid(void **state)
{
    (void)state;
    struct protocol p = {0};
    char buffer[1];
    struct mk_exchange *x = site_get(&site, "/", "");
    x->request.ops = &protocol_ops;
    x->request.ops_ctx = &p;
    x->request.length = 5;
    assert_int_equal(mk_request_read(&x->request, buffer, 0), -EINVAL);
    assert_int_equal(p.n_reads, 0);
    mk_exchange_free(x);
}

static void request_local_address_comes_from_protocol(void **state)
{
    (void)state;
    static const struct mk_request_ops without = {.read = on_read, .resume = on_resume};
    struct mk_addr local;
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_int_equal(mk_request_local_addr(&x->request, &local), -ENOTCONN);
    x->request.ops = &without;
    assert_int_equal(mk_request_local_addr(&x->request, &local), -ENOTCONN);
    x->request.ops = &protocol_ops;
    assert_int_equal(mk_request_local_addr(&x->request, &local), 0);
    assert_int_equal(local.port, 8080);
    mk_exchange_free(x);
}

/* ---- Values set by hooks ---- */

static void request_client_address_can_be_replaced(void **state)
{
    (void)state;
    struct mk_addr other;
    struct mk_exchange *x = site_get(&site, "/", "");
    assert_ptr_equal(mk_request_client_addr(&x->request), &site.peer);
    assert_true(mk_addr_parse(MK_STR("2001:db8::7"), &other));
    assert_int_equal(mk_request_set_client_addr(&x->request, &other), 0);
    memset(&other, 0, sizeof other);
    assert_str(mk_request_client_text(&x->request), "2001:db8::7");
    assert_int_equal(mk_request_client_addr(&x->request)->ip[0], 0x20);
    assert_int_equal(site.peer.is_unix, 1); /* the address of the connection is unchanged */
    mk_exchange_free(x);
}

static void request_user_can_be_set(void **state)
{
    (void)state;
    char name[] = "alice";
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_request *r = &x->request;
    assert_null(mk_request_user(r).p);
    assert_int_equal(mk_request_set_user(r, mk_str_from_c(name)), 0);
    memset(name, '?', sizeof name - 1);
    assert_str(mk_request_user(r), "alice");
    assert_int_equal(mk_request_set_user(r, MK_STR("bob")), 0);
    assert_str(mk_request_user(r), "bob");
    assert_int_equal(mk_request_set_user(r, MK_STR("")), 0);
    assert_non_null(mk_request_user(r).p);
    mk_exchange_free(x);
}

static void request_exposes_worker_vhost_and_scheme(void **state)
{
    (void)state;
    int place;
    struct mk_worker *worker = (void *)&place;
    struct mk_exchange *x = site_get(&site, "/a%2Fb", "");
    struct mk_request *r = &x->request;
    site.web.worker = worker;
    assert_str(mk_request_scheme(r), "http");
    r->encrypted = true;
    assert_str(mk_request_scheme(r), "https");
    assert_true(mk_request_has_encoded_slash(r));
    assert_int_equal(mk_request_time(r), site.now);
    assert_ptr_equal(mk_request_worker(r), worker);
    assert_null(mk_request_vhost(r));
    assert_null(mk_request_route(r).p);
    assert_true(mk_dispatch_run(x));
    assert_ptr_equal(mk_request_vhost(r), &site.host);
    assert_str(mk_request_route(r), "/*");
    mk_exchange_free(x);
    x = site_get(&site, "/a/b", "");
    assert_false(mk_request_has_encoded_slash(&x->request));
    mk_exchange_free(x);
}

static void request_without_handler_has_no_route(void **state)
{
    (void)state;
    struct mk_exchange *x = site_request(&site, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_null(mk_request_route(&x->request).p);
    mk_exchange_free(x);
    x = site_request(&site, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 405);
    assert_null(mk_request_route(&x->request).p);
    mk_exchange_free(x);
}

/* ---- Memory ---- */

static char ended[8];

static void on_end(void *data)
{
    size_t len = strlen(ended);
    ended[len] = *(const char *)data;
}

static void request_memory_lives_as_long_as_request(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/", "");
    static const char names[] = "abc";
    char *large = mk_request_alloc(&x->request, 100000);
    assert_non_null(large);
    memset(large, 1, 100000);
    memset(ended, 0, sizeof ended);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mk_request_add_cleanup(&x->request, on_end, (void *)(uintptr_t)&names[i]), 0);
    mk_request_set_data(&x->request, large);
    assert_ptr_equal(mk_request_data(&x->request), large);
    assert_string_equal(ended, "");
    mk_exchange_free(x);
    assert_string_equal(ended, "cba");
}

static void request_attached_data_is_found_by_key(void **state)
{
    (void)state;
    static const char names[] = "ab";
    static const int one, two;
    char *a = (void *)(uintptr_t)&names[0], *b = (void *)(uintptr_t)&names[1];
    struct mk_exchange *x = site_get(&site, "/", "");
    struct mk_request *r = &x->request;
    memset(ended, 0, sizeof ended);
    assert_null(mk_request_attached(r, &one));
    assert_int_equal(mk_request_attach(r, &one, a, on_end), 0);
    assert_null(mk_request_attached(r, &two));
    assert_int_equal(mk_request_attach(r, &two, &site, NULL), 0);
    assert_ptr_equal(mk_request_attached(r, &one), a);
    assert_ptr_equal(mk_request_attached(r, &two), &site);
    assert_int_equal(mk_request_attach(r, &one, b, on_end), 0);
    assert_ptr_equal(mk_request_attached(r, &one), b);
    assert_string_equal(ended, "");
    mk_exchange_free(x);
    assert_string_equal(ended, "ba");
}

/* ---- Log ---- */

static void request_log_names_request(void **state)
{
    (void)state;
    struct mk_exchange *x = site_get(&site, "/path?q", "");
    assert_true(mk_addr_parse(MK_STR("192.0.2.7"), &site.peer));
    mk_request_log(&x->request, MK_LOG_WARN, "%s is %d", "it", 7);
    assert_string_equal(site.logged, "GET /path?q from 192.0.2.7: it is 7");
    mk_request_log(&x->request, MK_LOG_WARN, "a\nb\x1b[2J\xc2\x9b");
    assert_string_equal(site.logged, "GET /path?q from 192.0.2.7: a?b?[2J??");
    mk_exchange_free(x);
}

static void request_log_truncates_long_target(void **state)
{
    (void)state;
    char target[2001], message[3000];
    memset(target, 'a', sizeof target);
    target[0] = '/';
    target[sizeof target - 1] = '\0';
    memset(message, 'm', sizeof message);
    message[sizeof message - 1] = '\0';
    struct mk_exchange *x = site_get(&site, target, "");
    mk_request_log(&x->request, MK_LOG_WARN, "why");
    assert_true(mk_str_ends(mk_str_from_c(site.logged), MK_STR(": why")));
    mk_request_log(&x->request, MK_LOG_WARN, "%s", message); /* truncated somewhere */
    assert_true(strlen(site.logged) > 500);
    mk_exchange_free(x);
}

static void request_log_works_without_head(void **state)
{
    (void)state;
    struct mk_exchange *x = mk_exchange_new(&site.web, &site.blocks, site.now_ms, site.now);
    assert_non_null(x);
    mk_request_log(&x->request, MK_LOG_WARN, "odd");
    assert_string_equal(site.logged, "request from : odd");
    mk_exchange_free(x);
}

static unsigned n_notified;
static char log_text[64];
static bool takes_it;

static bool on_request_log(struct mk_request *request, enum mk_log_level level, mk_str message, void *data)
{
    assert_non_null(request);
    assert_ptr_equal(data, &n_notified);
    assert_int_equal(level, MK_LOG_DEBUG);
    snprintf(log_text, sizeof log_text, "%.*s", MK_STR_ARG(message));
    n_notified++;
    return takes_it;
}

static void request_log_can_be_taken_by_hook(void **state)
{
    (void)state;
    static const struct mk_plugin plugin = {.name = "log", .on_log = on_request_log};
    static const struct mk_hook hook = {.plugin = &plugin, .data = &n_notified};
    struct mk_exchange *x = site_run_get(&site, "/", "");
    unsigned before = site.n_logged;
    site.log.level = MK_LOG_ERROR;
    mk_request_log(&x->request, MK_LOG_DEBUG, "below the level");
    assert_int_equal(site.n_logged, before);
    site.host.hooks.log = (struct mk_hook_list){.at = &hook, .n = 1};
    n_notified = 0;
    takes_it = true;
    mk_request_log(&x->request, MK_LOG_DEBUG, "one\r%d", 2);
    assert_int_equal(n_notified, 1);
    assert_string_equal(log_text, "one?2");
    assert_int_equal(site.n_logged, before);
    takes_it = false;
    site.log.level = MK_LOG_DEBUG;
    mk_request_log(&x->request, MK_LOG_DEBUG, "both");
    assert_string_equal(log_text, "both");
    assert_int_equal(site.n_logged, before + 1);
    site.web.log = NULL;
    mk_request_log(&x->request, MK_LOG_DEBUG, "no log at all");
    assert_int_equal(n_notified, 3);
    mk_exchange_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(request_exposes_head, setup),
        fixture_test(request_headers_are_enumerated_in_order, setup),
        fixture_test(request_headers_can_be_changed, setup),
        fixture_test(request_change_replaces_confusable_names, setup),
        fixture_test(request_change_rejects_framing_and_bad_values, setup),
        fixture_test(request_change_limits_the_number_of_headers, setup),
        fixture_test(request_missing_values_are_absent, setup),
        fixture_test(request_absolute_target_sets_host, setup),
        fixture_test(request_targets_without_path, setup),
        fixture_test(request_raw_target_keeps_encoding, setup),
        fixture_test(request_rewrite_changes_raw_target, setup),
        fixture_test(request_has_client_address, setup),
        fixture_test(request_body_is_read_from_protocol, setup),
        fixture_test(request_read_with_empty_buffer_is_invalid, setup),
        fixture_test(request_memory_lives_as_long_as_request, setup),
        fixture_test(request_local_address_comes_from_protocol, setup),
        fixture_test(request_client_address_can_be_replaced, setup),
        fixture_test(request_user_can_be_set, setup),
        fixture_test(request_exposes_worker_vhost_and_scheme, setup),
        fixture_test(request_without_handler_has_no_route, setup),
        fixture_test(request_attached_data_is_found_by_key, setup),
        fixture_test(request_log_names_request, setup),
        fixture_test(request_log_truncates_long_target, setup),
        fixture_test(request_log_works_without_head, setup),
        fixture_test(request_log_can_be_taken_by_hook, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
