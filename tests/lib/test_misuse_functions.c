/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the library that prepare or observe a server: NULL, freed and started servers, invalid values,
 * and calls from callbacks. Each call is refused, and the server keeps serving. */
#include <monkey/cookie.h>
#include <monkey/form.h>
#include <monkey/router.h>
#include <monkey/test_client.h>
#include <monkey/version.h>
#include <stdlib.h>

#include "lib/embed.h"

static bool accept_all(const struct mk_addr *client, void *ctx)
{
    (void)client;
    (void)ctx;
    return true;
}

static void ignore_post(struct mk_worker *worker, void *ctx)
{
    (void)worker;
    (void)ctx;
}

static const struct mk_memory_file good = {.path = "/file.txt", .content = MK_STR_INIT("text")};

/* Calls every function that prepares a server. */
static void expect_all(struct mk_server *s, int e)
{
    assert_int_equal(mk_server_add_files(s, &good, 1, sizeof good), e);
    assert_int_equal(mk_server_set_default_type(s, "text/html"), e);
    assert_int_equal(mk_server_set_default_type(s, NULL), e);
    assert_int_equal(mk_server_set_accept_filter(s, accept_all, NULL), e);
    assert_int_equal(mk_server_set_error_handler(s, respond_hello, NULL), e);
    assert_int_equal(mk_server_add_vhost(s, "a", NULL), e);
    assert_int_equal(mk_server_add_section(s, "LOCATION"), e);
    assert_int_equal(mk_server_enable_body_spool(s), e);
    assert_int_equal(mk_server_add_route(s, "GET /late", respond_hello, NULL), e);
    assert_true(mk_server_add_certificate(s, "", NULL) < 0);
    assert_true(mk_server_listen_fd(s, -1, true) < 0);
    assert_true(mk_server_load_config(s, "/none") < 0);
    assert_true(mk_server_listener_fd(s, SIZE_MAX, 0) < 0);
    assert_true(mk_server_listener_fd(s, 0, SIZE_MAX) < 0);
    assert_true(mk_server_unlisten(s, NULL) < 0);
    assert_true(mk_server_unlisten(s, "") < 0);
    assert_true(mk_server_unlisten(s, "127.0.0.1:1") < 0);
    assert_true(mk_server_replace_certificate(s, NULL, NULL, NULL) < 0);
    assert_true(mk_server_replace_certificate(s, "none", "x", "y") < 0);
}

static void null_server_is_refused(void **state)
{
    (void)state;
    expect_all(NULL, -EINVAL);
    assert_int_equal(mk_server_listen(NULL, "127.0.0.1:0", NULL), -EINVAL);
    assert_int_equal(mk_server_post(NULL, ignore_post, NULL, NULL), -EINVAL);
    assert_non_null(mk_server_error(NULL));
    assert_non_null(mk_version());
}

static void started_server_is_refused(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, 2), 0);
    expect_all(s, -EBUSY);
    assert_int_equal(mk_server_add_certificate(s, "x", NULL), -EBUSY);
    assert_holds(fetch(port, "GET", "/"), "hello");
    assert_int_equal(mk_server_post(s, NULL, NULL, NULL), -EINVAL);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_wait(s), 0);
    expect_all(s, -EBUSY);
    assert_int_equal(mk_server_post(s, ignore_post, NULL, NULL), -ESHUTDOWN);
    mk_server_free(s);
}

#ifndef NDEBUG
static void freed_server_is_refused(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    mk_server_free(s);
    expect_all(s, -EINVAL);
    assert_int_equal(mk_server_post(s, ignore_post, NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_fd(s), -EINVAL);
    assert_int_equal(mk_server_step(s), -EINVAL);
    assert_int_equal(mk_server_run(s), -EINVAL);
    assert_int_equal(mk_server_address(s, 0, NULL, 0), -ENOENT);
    assert_null(mk_test_client_open(s));
}
#endif

static void invalid_values_are_refused(void **state)
{
    static const char *const types[] = {"",     "text", "text/", "/html", "text/html\r\nX: y", "text/html; x",
                                        "a b/c"};
    static const struct mk_memory_file bad[] = {{.path = NULL},     {.path = ""},
                                                {.path = "x"},      {.path = "/:id"},
                                                {.path = "/*rest"}, {.path = "/x", .type = "a\nb"}};
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    for (size_t i = 0; i < MK_LEN(types); i++)
        if (mk_server_set_default_type(s, types[i]) != -EINVAL)
            fail_msg("type %zu is taken", i);
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_server_add_files(s, &bad[i], 1, sizeof bad[i]) != -EINVAL)
            fail_msg("file %zu is taken", i);
    assert_int_equal(mk_server_add_files(s, NULL, 1, sizeof good), -EINVAL);
    assert_int_equal(mk_server_add_files(s, NULL, 0, sizeof good), 0);
    for (size_t size = 0; size < 16; size++)
        assert_int_equal(mk_server_add_files(s, &good, 1, size), -EINVAL);
    assert_int_equal(mk_server_add_files(s, &good, 1, SIZE_MAX), -EINVAL);
    assert_int_equal(mk_server_add_files(s, &good, 1, sizeof good + 8), -EINVAL);
    assert_int_equal(mk_server_add_files(s, &good, 1, sizeof good), 0);
    assert_int_equal(mk_server_add_files(s, &good, 1, sizeof good), -EEXIST);
    assert_true(mk_server_add_certificate(s, NULL, NULL) < 0);
    assert_true(
        mk_server_add_certificate(s, "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\n") < 0);
    assert_int_equal(mk_server_set_accept_filter(s, NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_set_error_handler(s, NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_post(s, ignore_post, NULL, NULL), -ESHUTDOWN);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/file.txt"), "text");
    mk_server_free(s);
}

static enum mk_verdict use_parameters(struct mk_request *request, struct mk_response *response, void *data)
{
    assert_null(mk_server_param(request, "none"));
    assert_null(mk_server_param(request, ""));
    assert_null(mk_server_param(request, NULL));
    assert_null(mk_server_param(NULL, "id"));
    return respond_hello(request, response, data);
}

static void parameters_that_do_not_exist_are_absent(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /:id", use_parameters, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/7"), "hello");
    mk_server_free(s);
}

/* A string of 1 MB. */
static mk_str large(char c)
{
    static char text[1 << 20];
    memset(text, c, sizeof text);
    return mk_str_of(text, sizeof text);
}

static enum mk_verdict read_forms(struct mk_request *r, struct mk_response *response, void *data)
{
    static const mk_str nul = {"/a\0b", 4}, lines = {"a\r\nb: c", 7}, absent = {NULL, 0}, empty = {"", 0};
    const struct mk_form_limits tiny = {.size = 1, .fields = 1, .name = 1, .value = 1},
                                huge = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, {0}};
    const struct mk_allocator memory = mk_request_allocator(r);
    const struct mk_form *received;
    struct mk_form form;
    mk_str value = nul, rest = absent, name;
    assert_true(mk_request_cookie(r, "", &value) == -ENOENT && !value.p &&
                mk_request_cookie(r, "a=b", &value) == -ENOENT);
    assert_true(!mk_request_cookie_view(r, "").p && !mk_cookie_next(&rest, &name, &value) &&
                !mk_cookie_find(absent, absent).p);
    const struct mk_cookie cookies[] = {{.name = NULL},
                                        {.name = ""},
                                        {.name = "a\r\nb"},
                                        {.name = "a", .value = lines},
                                        {.name = "a", .path = lines},
                                        {.name = "a", .domain = nul},
                                        {.name = "a", .value = large('v')},
                                        {.name = "a", .same_site = (enum mk_same_site)77}};
    for (size_t i = 0; i < MK_LEN(cookies); i++)
        if (mk_response_add_cookie(r, response, &cookies[i]) != -EINVAL)
            fail_msg("cookie %zu is set", i);
    assert_true(mk_request_query_form(r, &tiny, &form) == -EMSGSIZE &&
                mk_request_query_form(r, &huge, &form) == 0 && form.n == 1);
    assert_true(!mk_form_get(&form, "").p && !mk_form_get_at(&form, "forms", SIZE_MAX).p &&
                !mk_form_upload(&form, ""));
    assert_true(mk_form_parse(absent, &memory, NULL, &form) == 0 && form.n == 0 &&
                mk_form_parse(MK_STR("%"), &memory, NULL, &form) == -EBADMSG);
    assert_true(mk_form_parse(MK_STR("%00=%00"), &memory, &huge, &form) == 0 && form.n == 1 &&
                form.fields[0].value.len == 1);
    assert_true(mk_form_parse(large('&'), &memory, NULL, &form) == 0 &&
                mk_form_parse(large('a'), &memory, &huge, &form) == 0);
    assert_true(mk_request_form(r, &huge, NULL, &received) == -EMEDIUMTYPE &&
                mk_request_form(r, NULL, NULL, &received) == -EMEDIUMTYPE);
    (void)mk_request_form_error(r);
    assert_true(!mk_request_form_spool(r) && !mk_request_content_coding(r).p);
    assert_true(mk_form_status(0) >= 400 && mk_form_status(INT32_MIN) >= 400 &&
                mk_form_status(INT32_MAX) >= 400);
    static const struct mk_multipart_ops ops = {0};
    assert_true(!mk_multipart_boundary(absent, &name) && !mk_multipart_boundary(lines, &name));
    const mk_str boundaries[] = {absent, empty, nul, lines, large('b')};
    for (size_t i = 0; i < MK_LEN(boundaries); i++) {
        struct mk_multipart *m = mk_multipart_new(boundaries[i], NULL, &ops, NULL);
        if (m)
            (void)!mk_multipart_feed(m, absent), (void)!mk_multipart_feed(m, MK_STR("--\r\n\r\n")),
                (void)!mk_multipart_end(m);
        mk_multipart_free(m);
    }
    mk_multipart_free(NULL);
    return respond_hello(r, response, data);
}

static void readers_refuse_invalid_arguments(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", read_forms, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/?forms"), "hello");
    mk_server_free(s);
}

static struct mk_server *posting;
static atomic_int n_posted, n_done;
/* mk_server_post() may call free_in_done() in this thread, where mk_server_free() would free the server. */
static pthread_t program_thread;

static void post_again(struct mk_worker *worker, void *ctx)
{
    (void)worker;
    (void)ctx;
    if (atomic_fetch_add(&n_posted, 1) < 5)
        assert_int_equal(mk_server_post(posting, post_again, NULL, NULL), 0);
    mk_server_free(posting); /* refused */
    assert_int_equal(mk_server_wait(posting), -EDEADLK);
    assert_int_equal(mk_server_start(posting, 1), -EBUSY);
}

static void free_in_done(void *ctx)
{
    (void)ctx;
    if (!pthread_equal(pthread_self(), program_thread))
        mk_server_free(posting); /* refused */
    atomic_fetch_add(&n_done, 1);
}

static void posted_functions_cannot_free_their_server(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = posting = server_with("GET /", respond_hello, NULL, &port);
    program_thread = pthread_self();
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(mk_server_post(s, post_again, free_in_done, NULL), 0);
    wait_until(&n_posted, 6);
    wait_until(&n_done, 1);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
}

static void router_accepts_any_match_size(void **state)
{
    (void)state;
    struct mk_router *router = mk_router_new();
    char out[2 * sizeof(struct mk_router_match)];
    char room[10];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    assert_int_equal(mk_router_add(router, MK_STR("GET /:id"), NULL, MK_STR_NULL), 0);
    for (size_t size = 0; size < sizeof out; size++) {
        memset(out, 0x55, sizeof out);
        struct mk_router_match *match = (struct mk_router_match *)(void *)out;
        assert_int_equal(mk_router_find_sized(router, MK_STR("GET"), MK_STR("/x"), match, size),
                         MK_ROUTER_FOUND);
        for (size_t i = size; i < sizeof out; i++)
            assert_int_equal(out[i], 0x55);
    }
    mk_router_allow(router, UINT64_MAX, &text);
    mk_router_allow(router, 0, &text);
    assert_int_equal(mk_router_add(router, MK_STR(""), NULL, MK_STR_NULL), -EINVAL);
    assert_true(mk_router_error(router).len > 0);
    mk_router_free(router);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_server_is_refused),
        cmocka_unit_test(started_server_is_refused),
#ifndef NDEBUG
        cmocka_unit_test(freed_server_is_refused),
#endif
        cmocka_unit_test(invalid_values_are_refused),
        cmocka_unit_test(parameters_that_do_not_exist_are_absent),
        cmocka_unit_test(readers_refuse_invalid_arguments),
        cmocka_unit_test(posted_functions_cannot_free_their_server),
        cmocka_unit_test(router_accepts_any_match_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
