/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the life cycle of an embedded server: setup, three run modes, stop, free. */
#include "lib/embed.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- Three run modes ---- */

static void *run(void *s)
{
    return (void *)(intptr_t)mk_server_run(s);
}

static void run_serves_in_the_calling_thread(void **state)
{
    (void)state;
    unsigned port;
    pthread_t thread;
    void *result;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    pthread_create(&thread, NULL, run, s);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    assert_holds(fetch(port, "GET", "/nothing"), "HTTP/1.1 404 ");
    mk_server_stop(s, 0);
    pthread_join(thread, &result);
    assert_null(result);
    mk_server_free(s);
}

static void start_serves_in_its_own_threads(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, 3), 0);
    for (int i = 0; i < 20; i++)
        assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_stop(s, 10000);
    assert_int_equal(mk_server_wait(s), 0);
    assert_int_equal(dial(port), -1);
    mk_server_free(s);
}

/* Steps the server until the other end has closed. */
static const char *receive_in_steps(struct mk_server *s, int fd)
{
    static char buffer[4096];
    size_t len = 0;
    struct pollfd p[] = {{.fd = mk_server_fd(s), .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    for (ssize_t n = 1; n > 0;) {
        assert_true(poll(p, 2, PATIENCE_S * 1000) > 0);
        if (p[0].revents)
            assert_int_equal(mk_server_step(s), 1);
        if (!p[1].revents)
            continue;
        n = recv(fd, buffer + len, sizeof buffer - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
    }
    buffer[len] = '\0';
    close(fd);
    return buffer;
}

static void step_serves_in_the_caller_loop(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    int fd = mk_server_fd(s);
    assert_true(fd >= 0);
    assert_int_equal(mk_server_fd(s), fd);
    int client = dial(port);
    send_request_on(client, "GET", "/hello");
    assert_holds(receive_in_steps(s, client), "\r\n\r\nhello");
    mk_server_stop(s, 10000);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    assert_int_equal(mk_server_step(s), 0);
    assert_int_equal(mk_server_step(s), 0);
    mk_server_free(s);
}

/* While nothing else happens, only the descriptor can report timers. */
static void step_descriptor_reports_timers(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAliveTimeout", "1s"), 0);
    assert_true(mk_server_fd(s) >= 0);
    int client = dial(port);
    assert_int_equal(send(client, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 33, 0), 33);
    assert_holds(receive_in_steps(s, client), "\r\n\r\nhello");
    mk_server_free(s);
}

/* ---- Setup ---- */

static void set_with_unknown_word_suggests_nearest(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_string_equal(mk_server_error(s), "");
    assert_int_equal(mk_server_set(s, "SERVER", "KepAlive", "on"), -EINVAL);
    assert_holds(mk_server_error(s), "unknown key `KepAlive`");
    assert_holds(mk_server_error(s), "did you mean `KeepAlive`?");
    assert_int_equal(mk_server_set(s, "SERVER", "Timeout", "1x"), -EINVAL);
    assert_holds(mk_server_error(s), "expected a time");
    assert_holds(mk_server_error(s), "not `1x`");
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", "on\n    Timeout 1"), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER]\n[HOST", "KeepAlive", "on"), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", "# KeepAlive", "on"), -EINVAL);
    assert_int_equal(mk_server_set(s, NULL, "KeepAlive", "on"), -EINVAL);
    assert_int_equal(mk_server_add_route(s, "GET users", respond_hello, NULL), -EINVAL);
    assert_holds(mk_server_error(s), "users");
    assert_int_equal(mk_server_add_route(s, "GET /", NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_listen(s, "localhost:80", NULL), -EINVAL);
    assert_holds(mk_server_error(s), "`localhost:80` is not an address");
    assert_int_equal(mk_server_listen(s, "127.0.0.1", NULL), -EINVAL);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0 tsl", NULL), -EINVAL);
    assert_int_equal(mk_server_listen_fd(s, -1, false), -EBADF);
    assert_int_equal(mk_server_load_config(s, ""), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", "off"), 0);
    assert_string_equal(mk_server_error(s), "");
    mk_server_free(s);
}

static void start_reports_errors_of_the_whole_configuration(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_set(s, "SEVRER", "KeepAlive", "on"), 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "nothing-like-that"), 0);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    assert_holds(mk_server_error(s), "unknown section [SEVRER]");
    assert_holds(mk_server_error(s), "did you mean [SERVER]?");
    assert_holds(mk_server_error(s), "cannot load the plugin `nothing-like-that`");
    mk_server_free(s);
    assert_string_equal(mk_server_error(NULL), "out of memory");
    assert_null(mk_server_new(&(struct mk_server_options){.size = 9999}));
    assert_null(mk_server_new(&(struct mk_server_options){.size = 8}));
    /* A program that was built with older headers, whose struct had only these members. */
    struct older_options {
        size_t size;
        void (*on_log)(void *ctx, enum mk_log_level level, mk_str text);
        void *log_ctx;
    } *older = malloc(sizeof *older);
    *older = (struct older_options){.size = sizeof *older};
    s = mk_server_new((const struct mk_server_options *)(const void *)older);
    free(older);
    assert_non_null(s);
    mk_server_free(s);
}

/* Line numbers would refer to a configuration text that the library generates and the caller never sees. */
static void start_with_wrong_line_shows_only_the_line(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_set(s, "TYPES", "text/x-own", "own"), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", NULL), 0);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    assert_holds(mk_server_error(s), "error: unknown section [TYPES]\n    [TYPES]");
    assert_null(strstr(mk_server_error(s), "the program:"));
    mk_server_free(s);
}

static void start_without_address_says_so(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_add_route(s, "GET /", respond_hello, NULL), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_string_equal(mk_server_error(s),
                        "warning: the server has no address: call mk_server_listen() before you start it");
    mk_server_free(s);
}

static void set_with_two_lines_is_refused_at_once(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_set(s, "HOST", "Certificate", "-----BEGIN CERTIFICATE-----\nMII"), -EINVAL);
    assert_holds(mk_server_error(s), "the value of `Certificate` in [HOST] has more than one line");
    mk_server_free(s);
}

static void listen_on_port_in_use_is_an_error_at_once(void **state)
{
    (void)state;
    unsigned port;
    char where[32];
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port), *other = mk_server_new(NULL);
    snprintf(where, sizeof where, "127.0.0.1:%u", port);
    assert_int_equal(mk_server_listen(other, where, NULL), -EADDRINUSE);
    assert_holds(mk_server_error(other), where);
    mk_server_free(other);
    mk_server_free(s);
}

static void listen_on_port_0_chooses_a_new_port(void **state)
{
    (void)state;
    unsigned a, b;
    char buffer[128];
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &a);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &b), 0);
    assert_int_not_equal(a, b);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(a, "GET", "/"), "hello");
    assert_holds(fetch(b, "GET", "/"), "hello");
    assert_int_equal(mk_server_address(s, 1, buffer, sizeof buffer), 0);
    assert_int_equal(strtoul(strrchr(buffer, ':') + 1, NULL, 10), b);
    assert_int_equal(mk_server_address(s, 1, buffer, 5), -ENOSPC);
    assert_int_equal(mk_server_address(s, 2, buffer, sizeof buffer), -ENOENT);
    mk_server_free(s);
}

static void listen_on_socket_of_the_program_serves(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_add_route(s, "GET /", respond_hello, NULL), 0);
    assert_int_equal(mk_server_listen_fd(s, fd, false), 0);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(ntohs(a.sin_port), "GET", "/"), "hello");
    mk_server_free(s);
    assert_int_equal(listen(fd, 1), 0); /* the listener is still open */
    close(fd);
}

/* ---- Files, hosts, plugins, a configuration ---- */

struct folder {
    char path[64];
};

static int make_folder(void **state)
{
    static struct folder f;
    char name[PATH_MAX];
    snprintf(f.path, sizeof f.path, "/tmp/monkey-lib-XXXXXX");
    if (!mkdtemp(f.path))
        return -1;
    snprintf(name, sizeof name, "%s/index.html", f.path);
    FILE *file = fopen(name, "w");
    fputs("the index", file);
    fclose(file);
    snprintf(name, sizeof name, "%s/monkey.conf", f.path);
    file = fopen(name, "w");
    fprintf(file, "[SERVER]\n    Listen 127.0.0.1:0\n    HideVersion off\n[HOST]\n    DocumentRoot .\n");
    fclose(file);
    *state = &f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char name[PATH_MAX];
    static const char *const names[] = {"index.html", "monkey.conf", "a.sock", "log"};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        snprintf(name, sizeof name, "%s/%s", f->path, names[i]);
        (void)unlink(name);
    }
    return rmdir(f->path);
}

static unsigned port_of(struct mk_server *s, size_t i)
{
    char buffer[128];
    assert_int_equal(mk_server_address(s, i, buffer, sizeof buffer), 0);
    return (unsigned)strtoul(strrchr(buffer, ':') + 1, NULL, 10);
}

static void files_follow_the_routes_of_a_host(void **state)
{
    struct folder *f = *state;
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    assert_int_equal(mk_server_add_vhost(s, "a *.a", f->path), 0);
    assert_int_equal(mk_server_add_route(s, "GET /hello", respond_hello, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/"), "the index");
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

static void config_file_is_loaded_and_changed(void **state)
{
    struct folder *f = *state;
    char path[PATH_MAX];
    struct mk_server *s = mk_server_new(NULL);
    snprintf(path, sizeof path, "%s/monkey.conf", f->path);
    assert_int_equal(mk_server_load_config(s, path), 0);
    assert_int_equal(mk_server_load_config(s, path), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", "HideVersion", "on"), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    const char *answer = fetch(port_of(s, 0), "GET", "/");
    assert_holds(answer, "the index");
    assert_holds(answer, "Server: Monkey\r\n");
    mk_server_free(s);
}

/* ---- Routes ---- */

static enum mk_verdict show_user(struct mk_request *request, struct mk_response *response, void *data)
{
    char buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    const struct mk_router_param *id = mk_server_param(request, "id");
    assert_null(mk_server_param(request, "other"));
    mk_buf_addf(&text, "%s user %lld of %.*s", (const char *)data, (long long)id->as_int,
                MK_STR_ARG(mk_request_route(request)));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static void routes_have_methods_and_parameters(void **state)
{
    struct folder *f = *state;
    static char all[] = "any", own[] = "own";
    unsigned port;
    struct mk_server *s = server_with("GET,DELETE /users/:id<int>", show_user, all, &port);
    assert_int_equal(mk_server_add_route(s, "GET /users/:other<int>", show_user, NULL), -EEXIST);
    assert_holds(mk_server_error(s), "/users/:id<int>");
    assert_int_equal(mk_server_add_vhost(s, "a", f->path), 0);
    assert_int_equal(mk_server_add_route(s, "PUT /users/:id<int>", show_user, own), 0);
    assert_int_equal(mk_server_add_vhost(s, "b", NULL), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/users/-7"), "any user -7 of /users/:id<int>");
    assert_holds(fetch(port, "PUT", "/users/7"), "own user 7 of");
    assert_holds(fetch(port, "HEAD", "/users/7"), "HTTP/1.1 200 ");
    assert_holds(fetch(port, "GET", "/users/x"), "HTTP/1.1 404 ");
    assert_holds(fetch(port, "GET", "/"), "the index");
    const char *refused = fetch(port, "POST", "/users/7");
    assert_holds(refused, "HTTP/1.1 405 ");
    assert_holds(refused, "Allow: GET, HEAD, PUT, DELETE, OPTIONS");
    assert_holds(fetch(port, "OPTIONS", "/users/7"), "Allow: GET, HEAD, PUT, DELETE, OPTIONS");
    mk_server_free(s);
}

static enum mk_verdict greet(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    mk_response_add_header(response, MK_STR("X-Greeting"), MK_STR("hello"));
    return MK_NEXT;
}

/* ---- Responses ---- */

static enum mk_verdict respond_typed(struct mk_request *request, struct mk_response *response, void *type)
{
    (void)request;
    mk_response_set_body_nocopy(response, MK_STR("{}"));
    mk_response_add_header(response, MK_STR("Content-Type"), mk_str_from_c(type));
    return MK_DONE;
}

static enum mk_verdict respond_empty(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    mk_response_set_status(response, 204);
    return MK_DONE;
}

static enum mk_verdict refuse(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    mk_response_add_header(response, MK_STR("Retry-After"), MK_STR("7"));
    mk_response_set_status(response, 503);
    return MK_ERROR;
}

/* Starts a server in one thread, with this default type and this error format, if given. */
static struct mk_server *start_responding(const char *type, const char *error_format, unsigned *port)
{
    static char own[] = "text/csv";
    struct mk_server *s = server_with("GET /text", respond_hello, NULL, port);
    assert_int_equal(mk_server_add_route(s, "GET /typed", respond_typed, own), 0);
    assert_int_equal(mk_server_add_route(s, "GET /empty", respond_empty, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /refused", refuse, NULL), 0);
    if (!type || *type)
        assert_int_equal(mk_server_set_default_type(s, type), 0);
    if (error_format)
        assert_int_equal(mk_server_set(s, "SERVER", "ErrorFormat", error_format), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    return s;
}

static void text_without_type_gets_the_default_type(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start_responding("", NULL, &port);
    assert_holds(fetch(port, "GET", "/text"), "\r\nContent-Type: text/plain; charset=utf-8\r\n");
    assert_holds(fetch(port, "HEAD", "/text"), "\r\nContent-Type: text/plain; charset=utf-8\r\n");
    const char *typed = fetch(port, "GET", "/typed");
    assert_holds(typed, "\r\nContent-Type: text/csv\r\n");
    assert_null(strstr(typed, "text/plain"));
    assert_null(strstr(fetch(port, "GET", "/empty"), "Content-Type"));
    assert_holds(fetch(port, "GET", "/refused"), "\r\nContent-Type: text/html; charset=utf-8\r\n");
    mk_server_free(s);
}

static void default_type_is_settable(void **state)
{
    (void)state;
    unsigned port;
    char type[] = "application/json";
    struct mk_server *s = start_responding(type, NULL, &port);
    memset(type, 'x', sizeof type - 1);
    assert_holds(fetch(port, "GET", "/text"), "\r\nContent-Type: application/json\r\n");
    mk_server_free(s);
    s = start_responding(NULL, NULL, &port);
    assert_null(strstr(fetch(port, "GET", "/text"), "Content-Type"));
    assert_int_equal(mk_server_set_default_type(s, "text/html"), -EBUSY);
    mk_server_free(s);
    s = mk_server_new(NULL);
    assert_int_equal(mk_server_set_default_type(s, "text"), -EINVAL);
    assert_holds(mk_server_error(s), "`text` is not a media type");
    assert_int_equal(mk_server_set_default_type(s, "text/html"), 0);
    assert_int_equal(mk_server_set_default_type(s, "text/csv; charset=utf-8"), 0);
    mk_server_free(s);
}

static void errors_are_json_on_request(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start_responding("", "json", &port);
    const char *reply = fetch(port, "GET", "/missing");
    assert_holds(reply, "HTTP/1.1 404 ");
    assert_holds(reply, "\r\nContent-Type: application/problem+json\r\n");
    assert_holds(reply, "\r\n\r\n{\"title\":\"Not Found\",\"status\":404,");
    reply = fetch(port, "PUT", "/text");
    assert_holds(reply, "\r\nAllow: GET, HEAD, OPTIONS\r\n");
    assert_holds(reply, "{\"title\":\"Method Not Allowed\",\"status\":405,");
    reply = fetch(port, "GET", "/refused");
    assert_holds(reply, "\r\nRetry-After: 7\r\n");
    assert_holds(reply, "{\"title\":\"Service Unavailable\",\"status\":503,");
    mk_server_free(s);
}

static void plugins_may_be_structs_of_the_program(void **state)
{
    static const struct mk_plugin greeting = {MK_PLUGIN_HEAD, .name = "greeting", .on_request = greet};
    static const struct mk_plugin odd = {.abi = 99, .size = sizeof odd, .name = "odd"};
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_plugin(s, &greeting), 0);
    assert_int_equal(mk_server_add_plugin(s, NULL), -EINVAL);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/hello"), "X-Greeting: hello\r\n");
    mk_server_free(s);
    s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_plugin(s, &odd), 0);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    assert_holds(mk_server_error(s), "built for ABI 99");
    mk_server_free(s);
}

static void bundled_plugins_are_loaded_by_name(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "metrics"), 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "headers"), 0);
    assert_int_equal(mk_server_set(s, "HEADERS", "Secure", "on"), 0);
    assert_int_equal(mk_server_set(s, "ROUTES", "/health", "metrics health"), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/health"), "HTTP/1.1 200 ");
    assert_holds(fetch(port, "GET", "/hello"), "X-Content-Type-Options: nosniff");
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

/* Finds the thread IDs in the text; 0 follows the last one. */
static void find_numbers(const char *text, unsigned long *numbers, size_t n)
{
    static const char mark[] = "monkey_worker_connections{pid=\"";
    for (const char *at = strstr(text, mark); at && n > 1; at = strstr(at, mark), n--) {
        at += sizeof mark - 1;
        *numbers++ = strtoul(at, NULL, 10);
    }
    *numbers = 0;
}

static void metrics_distinguish_threads(void **state)
{
    static const char by_address[] = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    (void)state;
    unsigned port;
    unsigned long numbers[4];
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "metrics"), 0);
    assert_int_equal(mk_server_set(s, "ROUTES", "/metrics", "metrics"), 0);
    assert_int_equal(mk_server_start(s, 2), 0);
    int client = dial(port); /* connects by address, because the server refuses other host names */
    assert_int_equal(send(client, by_address, sizeof by_address - 1, 0), sizeof by_address - 1);
    find_numbers(receive_all(client), numbers, MK_LEN(numbers));
    assert_true(numbers[0] && numbers[1] && numbers[0] != numbers[1]);
    assert_int_equal(numbers[2], 0);
    mk_server_free(s);
}

static void access_log_is_rotated_by_size(void **state)
{
    const struct folder *f = *state;
    char path[PATH_MAX], target[400];
    struct stat st;
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    snprintf(path, sizeof path, "%s/log", f->path);
    snprintf(target, sizeof target, "/?%0300d", 0);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "logger"), 0);
    assert_int_equal(mk_server_add_vhost(s, NULL, f->path), 0);
    assert_int_equal(mk_server_set(s, "LOGGER", "AccessLog", path), 0);
    assert_int_equal(mk_server_set(s, "LOGGER", "MaxSize", "4K"), 0);
    assert_int_equal(mk_server_set(s, "LOGGER", "Keep", "1"), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_start(s, 2), 0);
    snprintf(path, sizeof path, "%s/log.1", f->path);
    for (int i = 0; stat(path, &st); i++) {
        assert_true(i < PATIENCE_S * 100);
        assert_holds(fetch(port, "GET", target), "the index");
        usleep(10000);
    }
    mk_server_free(s);
    assert_true(st.st_size >= 4096);
    assert_int_equal(unlink(path), 0);
}

static void plugin_that_starts_programs_is_a_warning(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "cgi"), 0);
    assert_int_equal(mk_server_set(s, "ROUTES", "/cgi/*", "cgi"), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(mk_server_error(s), "`cgi` starts subprocesses, which libmonkey does not support");
    mk_server_free(s);
}

static void unix_socket_is_served_and_removed(void **state)
{
    struct folder *f = *state;
    char where[PATH_MAX];
    struct stat st;
    struct mk_server *s = mk_server_new(NULL);
    snprintf(where, sizeof where, "unix:%s/a.sock", f->path);
    assert_int_equal(mk_server_add_route(s, "GET /", respond_hello, NULL), 0);
    assert_int_equal(mk_server_listen(s, where, NULL), 0);
    assert_int_equal(mk_server_start(s, 2), 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s/a.sock", f->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    send_request_on(fd, "GET", "/");
    assert_holds(receive_all(fd), "hello");
    mk_server_free(s);
    assert_int_equal(stat(a.sun_path, &st), -1);
}

/* ---- Log messages ---- */

struct messages {
    pthread_mutex_t lock;
    char text[4096];
};

static void store_message(void *ctx, enum mk_log_level level, mk_str text)
{
    struct messages *messages = ctx;
    pthread_mutex_lock(&messages->lock);
    size_t len = strlen(messages->text);
    snprintf(messages->text + len, sizeof messages->text - len, "%d %.*s\n", (int)level, MK_STR_ARG(text));
    pthread_mutex_unlock(&messages->lock);
}

static enum mk_verdict log_warning(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_request_log(request, MK_LOG_WARN, "this is odd");
    return respond_hello(request, response, data);
}

static void log_messages_go_to_the_program(void **state)
{
    (void)state;
    static struct messages messages = {.lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned port;
    struct mk_server *s = mk_server_new(&(struct mk_server_options){
        .size = sizeof(struct mk_server_options), .on_log = store_message, .log_ctx = &messages});
    assert_int_equal(mk_server_add_route(s, "/", log_warning, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", &port), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "POST", "/"), "hello");
    mk_server_free(s);
    assert_holds(messages.text, "this is odd");
}

static void in_memory_server_does_not_listen(void **state)
{
    struct folder *f = *state;
    char path[PATH_MAX], buffer[128];
    const struct mk_server_options options = {.size = sizeof options, .in_memory = true};
    struct mk_server *s = mk_server_new(&options);
    snprintf(path, sizeof path, "%s/monkey.conf", f->path);
    assert_int_equal(mk_server_load_config(s, path), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_not_equal(mk_server_address(s, 0, buffer, sizeof buffer), 0);
    mk_server_free(s);
}

static void server_plugin_folder_is_the_only_one_searched(void **state)
{
    struct folder *f = *state;
    struct mk_server_options options = {.size = sizeof options, .plugin_folder = f->path};
    char expected[128];
    snprintf(expected, sizeof expected, "monkey-nonesuch.so is not in %s", f->path);
    struct mk_server *s = mk_server_new(&options);
    options.plugin_folder = "";
    assert_null(mk_server_new(&options));
    options.plugin_folder = f->path;
    mk_server_free(mk_server_new(&options));
    assert_int_equal(mk_server_set(s, "PLUGINS", "Load", "nonesuch"), 0);
    assert_true(mk_server_start(s, 1) < 0);
    assert_holds(mk_server_error(s), expected);
    assert_null(strstr(mk_server_error(s), " or /"));
    mk_server_free(s);
}

/* One host uses TLS, and the other, with the same name, redirects to it: each has its own address. */
static void in_memory_hosts_may_share_a_name(void **state)
{
    static const char *const hosts[] = {"127.0.0.1:80", "127.0.0.1:443 tls"};
    struct folder *f = *state;
    char path[PATH_MAX];
    const struct mk_server_options options = {.size = sizeof options, .in_memory = true};
    snprintf(path, sizeof path, "%s/hosts.conf", f->path);
    FILE *file = fopen(path, "w");
    for (size_t i = 0; i < MK_LEN(hosts); i++)
        fprintf(file,
                "[HOST]\n    Listen %s\n    ServerName one.example\n    Default on\n    DocumentRoot .\n",
                hosts[i]);
    fclose(file);
    struct mk_server *s = mk_server_new(&options);
    assert_int_equal(mk_server_load_config(s, path), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    mk_server_free(s);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_serves_in_the_calling_thread),
        cmocka_unit_test(start_serves_in_its_own_threads),
        cmocka_unit_test(step_serves_in_the_caller_loop),
        cmocka_unit_test(step_descriptor_reports_timers),
        cmocka_unit_test(set_with_unknown_word_suggests_nearest),
        cmocka_unit_test(start_reports_errors_of_the_whole_configuration),
        cmocka_unit_test(start_with_wrong_line_shows_only_the_line),
        cmocka_unit_test(start_without_address_says_so),
        cmocka_unit_test(set_with_two_lines_is_refused_at_once),
        cmocka_unit_test(listen_on_port_in_use_is_an_error_at_once),
        cmocka_unit_test(listen_on_port_0_chooses_a_new_port),
        cmocka_unit_test(listen_on_socket_of_the_program_serves),
        cmocka_unit_test(files_follow_the_routes_of_a_host),
        cmocka_unit_test(config_file_is_loaded_and_changed),
        cmocka_unit_test(routes_have_methods_and_parameters),
        cmocka_unit_test(text_without_type_gets_the_default_type),
        cmocka_unit_test(default_type_is_settable),
        cmocka_unit_test(errors_are_json_on_request),
        cmocka_unit_test(plugins_may_be_structs_of_the_program),
        cmocka_unit_test(bundled_plugins_are_loaded_by_name),
        cmocka_unit_test(metrics_distinguish_threads),
        cmocka_unit_test(access_log_is_rotated_by_size),
        cmocka_unit_test(plugin_that_starts_programs_is_a_warning),
        cmocka_unit_test(unix_socket_is_served_and_removed),
        cmocka_unit_test(log_messages_go_to_the_program),
        cmocka_unit_test(in_memory_server_does_not_listen),
        cmocka_unit_test(in_memory_hosts_may_share_a_name),
        cmocka_unit_test(server_plugin_folder_is_the_only_one_searched),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
