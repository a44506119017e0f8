/* SPDX-License-Identifier: Apache-2.0 */
/* A program that passes NULL or invalid values: each call is refused, and the server keeps serving. */
#include <fcntl.h>
#include <monkey/request_ref.h>
#include <monkey/router.h>
#include <monkey/test_client.h>
#include <monkey/websocket.h>
#include <stdlib.h>

#include "lib/embed.h"

static void options_of_another_library_version_are_refused(void **state)
{
    (void)state;
    struct mk_server_options options = {.size = sizeof options + 8};
    assert_null(mk_server_new(&options));
    options.size = SIZE_MAX;
    assert_null(mk_server_new(&options));
    for (options.size = 0; options.size < offsetof(struct mk_server_options, in_memory); options.size += 4)
        assert_null(mk_server_new(&options));
    assert_string_equal(mk_server_error(NULL), "out of memory");
}

static void strings_that_are_null_are_refused(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, NULL, "KeepAlive", "off"), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", NULL, "off"), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", NULL), -EINVAL);
    assert_int_equal(mk_server_add_section(s, NULL), -EINVAL);
    assert_int_equal(mk_server_load_config(s, NULL), -EINVAL);
    assert_int_equal(mk_server_add_plugin(s, NULL), -EINVAL);
    assert_int_equal(mk_server_add_route(s, NULL, respond_hello, NULL), -EINVAL);
    assert_int_equal(mk_server_add_route(s, "GET /x", NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_listen(s, NULL, NULL), -EINVAL);
    assert_int_not_equal(mk_server_error(s)[0], '\0');
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(mk_server_address(s, 0, NULL, 0), -ENOSPC);
    assert_int_equal(mk_server_address(s, SIZE_MAX, NULL, 0), -ENOENT);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
}

static void strings_that_are_no_lines_are_refused(void **state)
{
    static const char *const texts[] = {"",   "a\nb", "a\r\nb", "[SERVER]", "\n[HOST]\n", "${NO_SUCH_NAME}",
                                        "\"", "\\"};
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        bool is_name = i >= 5; /* a valid name of an unknown section, which only the start rejects */
        assert_true(is_name || mk_server_set(s, texts[i], "KeepAlive", "off") == -EINVAL);
        assert_true(is_name || mk_server_add_section(s, texts[i]) == -EINVAL);
        assert_int_equal(mk_server_set(s, "SERVER", texts[i], "off"), -EINVAL);
        assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", texts[i]), -EINVAL);
        assert_int_equal(mk_server_add_route(s, texts[i], respond_hello, NULL), -EINVAL);
        assert_int_equal(mk_server_listen(s, texts[i], NULL), -EINVAL);
    }
    char *large = malloc(1 << 20);
    memset(large, 'a', 1 << 20);
    large[(1 << 20) - 1] = '\0';
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", large), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", large, "off"), -EINVAL);
    assert_int_equal(mk_server_listen(s, large, NULL), -EINVAL);
    assert_true(mk_server_add_route(s, large, respond_hello, NULL) < 0);
    free(large);
    mk_server_free(s);
}

static void descriptors_that_cannot_be_served_are_refused(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    int ends[2], bare = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                 datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                 file = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const int fds[] = {-1, INT_MAX, INT_MIN, file, datagrams, ends[0], bare};
    for (size_t i = 0; i < MK_LEN(fds); i++) {
        if (mk_server_listen_fd(s, fds[i], false) >= 0)
            fail_msg("descriptor %zu is taken", i);
        assert_int_not_equal(mk_server_error(s)[0], '\0');
    }
    mk_server_free(s);
    assert_int_equal(close(bare), 0);
    assert_int_equal(close(datagrams), 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void plugin_struct_that_is_invalid_is_refused(void **state)
{
    static const struct mk_plugin nameless = {MK_PLUGIN_HEAD},
                                  tiny = {.abi = MK_ABI, .size = 1, .name = "tiny"},
                                  huge = {.abi = MK_ABI, .size = SIZE_MAX, .name = "huge"},
                                  later = {.abi = UINT_MAX, .size = sizeof later, .name = "later"},
                                  odd = {MK_PLUGIN_HEAD, .name = "no\nname"}, zeroed = {0};
    static const struct mk_plugin *const all[] = {&nameless, &tiny, &huge, &later, &odd, &zeroed};
    (void)state;
    for (size_t i = 0; i < MK_LEN(all); i++) {
        unsigned port;
        struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
        if (mk_server_add_plugin(s, all[i]) == 0 && mk_server_start(s, 1) == 0)
            fail_msg("plugin %zu is taken", i);
        assert_int_not_equal(mk_server_error(s)[0], '\0');
        mk_server_free(s);
    }
}

static int n_loads;

static int count_load(struct mk_config *config, void **data)
{
    (void)config;
    *data = NULL;
    n_loads++;
    return 0;
}

static void plugin_added_twice_is_loaded_once(void **state)
{
    static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "twice", .load = count_load},
                                  other = {MK_PLUGIN_HEAD, .name = "twice"};
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_plugin(s, &plugin), 0);
    assert_int_equal(mk_server_add_plugin(s, &plugin), 0);
    assert_int_equal(mk_server_add_plugin(s, &other), -EINVAL);
    assert_holds(mk_server_error(s), "another plugin named `twice`");
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(n_loads, 1);
    mk_server_free(s);
}

static void test_client_refuses_invalid_arguments(void **state)
{
    static const struct mk_header none = {MK_STR_INIT(""), MK_STR_INIT("x")},
                                  lines = {MK_STR_INIT("a"), MK_STR_INIT("b\r\nc: d")};
    (void)state;
    unsigned port;
    struct mk_test_client_response answer;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "SERVER", "HTTP2", HAS_HTTP2 ? "on" : "off"), 0);
    assert_null(mk_test_client_open(NULL));
    struct mk_test_client *p = mk_test_client_open(s);
    for (int http2 = 0; http2 <= HAS_HTTP2; http2++) {
        assert_int_equal(mk_test_client_request(p, NULL, "/", NULL, 0, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", NULL, NULL, 0, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 1, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "/", &none, 1, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "/", &lines, 1, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "", "/", NULL, 0, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "", NULL, 0, MK_STR_NULL, &answer), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, NULL), -EINVAL);
        assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, &answer), 0);
        assert_int_equal(answer.status, 200);
        if (HAS_HTTP2 && !http2)
            assert_int_equal(mk_test_client_use_http2(p), 0);
    }
    assert_int_equal(mk_test_client_use_http2(NULL), -EINVAL);
    assert_int_equal(mk_test_client_send(NULL, MK_STR("x")), -EINVAL);
    assert_null(mk_test_client_received(NULL).p);
    mk_test_client_close(NULL);
    mk_test_client_close(p);
    mk_server_free(s);
}

static enum mk_verdict use_own_test_client(struct mk_request *request, struct mk_response *response,
                                           void *data)
{
    struct mk_test_client *p = *(struct mk_test_client **)data;
    struct mk_test_client_response answer;
    assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, &answer), -EBUSY);
    assert_int_equal(mk_test_client_step(p, 0), -EBUSY);
    return respond_hello(request, response, NULL);
}

static void handler_cannot_use_test_client_of_its_server(void **state)
{
    (void)state;
    unsigned port;
    struct mk_test_client_response answer;
    struct mk_test_client *p;
    struct mk_server *s = server_with("GET /", use_own_test_client, &p, &port);
    p = mk_test_client_open(s);
    assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, &answer), 0);
    assert_int_equal(answer.status, 200);
    mk_test_client_close(p);
    mk_server_free(s);
}

static void router_refuses_invalid_arguments(void **state)
{
    (void)state;
    struct mk_router *router = mk_router_new();
    struct mk_router_match match;
    const mk_str routes[] = {MK_STR_NULL,  MK_STR(""),     MK_STR("GET"),
                             MK_STR("/:"), MK_STR("/:a<"), MK_STR("/:a<no>")};
    for (size_t i = 0; i < MK_LEN(routes); i++)
        assert_int_equal(mk_router_add(router, routes[i], NULL, MK_STR_NULL), -EINVAL);
    assert_int_equal(mk_router_find(router, MK_STR_NULL, MK_STR_NULL, &match), MK_ROUTER_NO_PATH);
    assert_int_equal(mk_router_find(router, MK_STR(""), MK_STR(""), &match), MK_ROUTER_NO_PATH);
    mk_router_free(router);
    mk_router_free(NULL);
}

static void null_handles_are_refused(void **state)
{
    (void)state;
    assert_null(mk_request_ref_new(NULL));
    mk_request_ref_free(NULL);
    mk_websocket_message_free(NULL);
    assert_int_equal(mk_mem_set_allocator(NULL, NULL), -EINVAL);
    /* too late: the library has already allocated memory */
    assert_int_equal(mk_mem_set_allocator(realloc, free), -EBUSY);
}

/* For test_embedded.py: this program contains the library. */
static int print_load_error(const char *plugin)
{
    struct mk_server *s = mk_server_new(NULL);
    int e = mk_server_set(s, "PLUGINS", "Load", plugin) || mk_server_start(s, 1);
    puts(mk_server_error(s));
    mk_server_free(s);
    return e ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return print_load_error(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_another_library_version_are_refused),
        cmocka_unit_test(strings_that_are_null_are_refused),
        cmocka_unit_test(strings_that_are_no_lines_are_refused),
        cmocka_unit_test(descriptors_that_cannot_be_served_are_refused),
        cmocka_unit_test(plugin_struct_that_is_invalid_is_refused),
        cmocka_unit_test(plugin_added_twice_is_loaded_once),
        cmocka_unit_test(test_client_refuses_invalid_arguments),
        cmocka_unit_test(handler_cannot_use_test_client_of_its_server),
        cmocka_unit_test(router_refuses_invalid_arguments),
        cmocka_unit_test(null_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
