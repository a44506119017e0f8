/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners that are added and closed while the server is running: mk_server_listen(), mk_server_unlisten(),
 * mk_server_listener_fd(). */
#include "lib/embed.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>

enum { WORKERS = 4, CLIENTS = 4, ROUNDS = 40 };

static void write_address(char *text, size_t size, unsigned port)
{
    (void)snprintf(text, size, "127.0.0.1:%u", port);
}

/* Waits until the port has no listener. */
static void await_refusal(unsigned port)
{
    int fd;
    for (int i = 0; (fd = dial(port)) >= 0; i++) {
        close(fd);
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
    }
}

static unsigned add(struct mk_server *s)
{
    unsigned port = 0;
    int e = mk_server_listen(s, "127.0.0.1:0", &port);
    if (e)
        fail_msg("%d %s", e, mk_server_error(s));
    assert_true(port > 0);
    return port;
}

static int unlisten(struct mk_server *s, unsigned port)
{
    char text[64];
    write_address(text, sizeof text, port);
    return mk_server_unlisten(s, text);
}

static struct mk_server *start(unsigned threads, unsigned *port)
{
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, port);
    assert_int_equal(mk_server_start(s, threads), 0);
    return s;
}

/* ---- Threads ---- */

static void listener_added_at_run_time_serves(void **state)
{
    (void)state;
    unsigned first;
    struct mk_server *s = start(WORKERS, &first);
    unsigned second = add(s);
    for (int i = 0; i < 4 * WORKERS; i++) /* every worker */
        assert_holds(fetch(second, "GET", "/hello"), "\r\n\r\nhello");
    assert_holds(fetch(first, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

static void addresses_follow_the_changes(void **state)
{
    (void)state;
    char text[192], expected[192];
    unsigned first;
    struct mk_server *s = start(2, &first);
    unsigned second = add(s), third = add(s);
    write_address(expected, sizeof expected, third);
    assert_int_equal(mk_server_address(s, 2, text, sizeof text), 0);
    assert_string_equal(text, expected);
    assert_int_equal(mk_server_address(s, 3, text, sizeof text), -ENOENT);
    assert_int_equal(mk_server_address(s, 0, text, 5), -ENOSPC);
    assert_int_equal(unlisten(s, second), 0);
    assert_int_equal(mk_server_address(s, 1, text, sizeof text), 0);
    assert_string_equal(text, expected);
    assert_int_equal(mk_server_address(s, 2, text, sizeof text), -ENOENT);
    assert_int_equal(mk_server_unlisten(s, text), 0); /* the result of mk_server_address() */
    assert_int_equal(unlisten(s, first), 0);
    assert_int_equal(mk_server_address(s, 0, text, sizeof text), -ENOENT);
    await_refusal(first);
    mk_server_free(s);
}

static void closed_listener_refuses_and_open_connections_continue(void **state)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
    (void)state;
    char buffer[1024];
    unsigned port;
    struct mk_server *s = start(WORKERS, &port);
    int client = dial(port);
    for (int i = 0; i < 2; i++) {
        ssize_t n, len = 0;
        assert_int_equal(send(client, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
        do {
            n = recv(client, buffer + len, sizeof buffer - 1 - (size_t)len, 0);
            assert_true(n > 0);
            len += n;
            buffer[len] = '\0';
        } while (!strstr(buffer, "\r\n\r\nhello"));
        if (i == 0) {
            assert_int_equal(unlisten(s, port), 0);
            await_refusal(port);
        }
    }
    close(client);
    mk_server_free(s);
}

static void closed_address_can_be_used_again_at_once(void **state)
{
    (void)state;
    char text[64];
    unsigned port, again;
    struct mk_server *s = start(WORKERS, &port);
    write_address(text, sizeof text, port);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(mk_server_unlisten(s, text), 0);
        assert_int_equal(mk_server_unlisten(s, text), -ENOENT);
        assert_int_equal(mk_server_listen(s, text, &again), 0);
        assert_int_equal(again, port);
    }
    /* The last sockets of the old listeners may take one more connection each. */
    for (int i = 0; i < 4 * WORKERS; i++) {
        const char *answer = fetch(port, "GET", "/hello");
        if (*answer)
            assert_holds(answer, "\r\n\r\nhello");
    }
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

static void unix_listener_comes_and_goes_with_its_file(void **state)
{
    (void)state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char text[160];
    unsigned port;
    struct mk_server *s = start(2, &port);
    (void)snprintf(a.sun_path, sizeof a.sun_path, "/tmp/monkey-listeners-%d.sock", (int)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", a.sun_path);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk_server_listen(s, text, NULL), 0);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        send_request_on(fd, "GET", "/hello");
        assert_holds(receive_all(fd), "\r\n\r\nhello");
        assert_int_equal(mk_server_unlisten(s, text), 0);
        assert_int_equal(access(a.sun_path, F_OK), -1);
    }
    mk_server_free(s);
}

/* ---- Errors ---- */

static void errors_leave_the_listeners_unchanged(void **state)
{
    (void)state;
    char text[192];
    unsigned port, other_port;
    struct mk_server *other = start(1, &other_port), *s = start(2, &port);
    struct rlimit before, none;
    write_address(text, sizeof text, other_port);
    assert_int_equal(mk_server_listen(s, text, NULL), -EADDRINUSE);
    assert_holds(mk_server_error(s), "in use");
    write_address(text, sizeof text, port);
    assert_int_equal(mk_server_listen(s, text, NULL), -EINVAL);
    assert_holds(mk_server_error(s), "already has a Listen");
    assert_int_equal(mk_server_listen(s, "192.0.2.1:80", NULL), -EADDRNOTAVAIL);
    assert_int_equal(mk_server_listen(s, "nonsense", NULL), -EINVAL);
    assert_int_equal(mk_server_listen(s, NULL, NULL), -EINVAL);
    assert_int_equal(mk_server_listen(s, "127.0.0.1", NULL), -EINVAL);
    assert_holds(mk_server_error(s), "has no port");
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0 tls", NULL), -EINVAL);
    assert_holds(mk_server_error(s), "certificate");
    assert_int_equal(mk_server_listen(s, "unix:/nonexistent/a.sock", NULL), -ENOENT);
    assert_int_equal(mk_server_listen_fd(s, -1, false), -EBADF);
    assert_int_equal(mk_server_unlisten(s, "127.0.0.1:1"), -ENOENT);
    assert_int_equal(mk_server_unlisten(s, "x"), -EINVAL);
    assert_int_equal(mk_server_unlisten(s, NULL), -EINVAL);
    assert_int_equal(mk_server_listener_fd(s, 0, 2), -ENOENT);
    assert_int_equal(mk_server_listener_fd(s, 1, 0), -ENOENT);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int without_descriptors = mk_server_listen(s, "127.0.0.1:0", NULL);
    int without_duplicate = mk_server_listener_fd(s, 0, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(without_descriptors, -EMFILE);
    assert_true(without_duplicate == -EMFILE || without_duplicate == -EINVAL); /* EINVAL: fcntl(2) */
    assert_int_equal(mk_server_address(s, 1, text, sizeof text), -ENOENT);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
    mk_server_free(other);
}

static void number_of_listeners_is_limited(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = start(1, &port);
    for (int i = 1; i < 64; i++)
        (void)add(s);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", NULL), -EINVAL);
    assert_holds(mk_server_error(s), "at most 64");
    assert_int_equal(unlisten(s, port), 0);
    assert_holds(fetch(add(s), "GET", "/hello"), "\r\n\r\nhello");
    mk_server_free(s);
}

static void calls_at_the_wrong_time_are_rejected(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_unlisten(s, "127.0.0.1:1"), -EBUSY);
    assert_holds(mk_server_error(s), "not running");
    assert_int_equal(mk_server_replace_certificate(s, NULL, "x", NULL), -EBUSY);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(mk_server_replace_certificate(s, NULL, "x", NULL), -ENOENT);
    assert_int_equal(mk_server_replace_certificate(s, NULL, NULL, NULL), -EINVAL);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", NULL), -ESHUTDOWN);
    assert_int_equal(unlisten(s, port), -ESHUTDOWN);
    assert_holds(mk_server_error(s), "stopping");
    assert_int_equal(mk_server_wait(s), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", NULL), -ESHUTDOWN);
    assert_int_equal(mk_server_replace_certificate(s, NULL, "x", NULL), -ESHUTDOWN);
    assert_int_equal(mk_server_listener_fd(s, 0, 0), -ENOENT);
    mk_server_free(s);
    assert_int_equal(mk_server_unlisten(NULL, "127.0.0.1:1"), -EINVAL);
    assert_int_equal(mk_server_listener_fd(NULL, 0, 0), -ENOENT);
}

static void server_in_memory_opens_no_listener(void **state)
{
    (void)state;
    struct mk_server *s = mk_server_new(
        &(struct mk_server_options){.size = sizeof(struct mk_server_options), .in_memory = true});
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", NULL), -ENOTSUP);
    mk_server_free(s);
}

/* ---- Calls from handlers ---- */

static struct mk_server *around;
static atomic_uint new_port;

static enum mk_verdict move_listener(struct mk_request *request, struct mk_response *response, void *data)
{
    unsigned *old_port = data, port = add(around);
    assert_int_equal(unlisten(around, *old_port), 0);
    atomic_store(&new_port, port);
    return respond_hello(request, response, NULL);
}

static bool close_listener_when_asked(const struct mk_addr *client, void *ctx)
{
    (void)client;
    unsigned *port = ctx;
    if (*port)
        assert_int_equal(unlisten(around, *port), 0);
    *port = 0;
    return true;
}

static void handler_may_move_the_listener_of_its_connection(void **state)
{
    (void)state;
    unsigned port;
    around = server_with("GET /move", move_listener, &port, &port);
    assert_int_equal(mk_server_start(around, 2), 0);
    assert_holds(fetch(port, "GET", "/move"), "\r\n\r\nhello");
    await_refusal(port);
    port = atomic_load(&new_port);
    assert_holds(fetch(port, "GET", "/move"), "\r\n\r\nhello");
    mk_server_free(around);
}

static void accept_filter_may_close_its_listener(void **state)
{
    (void)state;
    unsigned port, to_close;
    around = server_with("GET /hello", respond_hello, NULL, &port);
    to_close = port;
    assert_int_equal(mk_server_set_accept_filter(around, close_listener_when_asked, &to_close), 0);
    assert_int_equal(mk_server_start(around, 1), 0);
    assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello");
    await_refusal(port);
    mk_server_free(around);
}

/* ---- The loop of the caller ---- */

struct client {
    unsigned port;
    atomic_bool is_done;
    bool is_served;
};

static void *fetch_once(void *ctx)
{
    struct client *c = ctx;
    c->is_served = strstr(fetch(c->port, "GET", "/hello"), "\r\n\r\nhello") != NULL;
    atomic_store(&c->is_done, true);
    return NULL;
}

static void step_until(struct mk_server *s, int fd, atomic_bool *is_done)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!atomic_load(is_done))
        if (poll(&p, 1, 10) == 1)
            assert_int_equal(mk_server_step(s), 1);
}

static void fetch_in_steps(struct mk_server *s, int fd, unsigned port)
{
    pthread_t thread;
    struct client c = {.port = port};
    pthread_create(&thread, NULL, fetch_once, &c);
    step_until(s, fd, &c.is_done);
    pthread_join(thread, NULL);
    assert_true(c.is_served);
}

static void caller_loop_applies_changes_in_its_next_step(void **state)
{
    (void)state;
    unsigned first;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &first);
    int fd = mk_server_fd(s);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_true(fd >= 0);
    unsigned second = add(s);
    fetch_in_steps(s, fd, second);
    assert_int_equal(unlisten(s, first), 0);
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1); /* the change makes the descriptor readable */
    assert_int_equal(mk_server_step(s), 1);
    assert_int_equal(dial(first), -1);
    fetch_in_steps(s, fd, second);
    assert_int_equal(unlisten(s, second), 0);
    mk_server_free(s); /* with a change that no step has applied */
}

static void listener_closed_before_any_step_closes_at_once(void **state)
{
    (void)state;
    unsigned first;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &first);
    assert_true(mk_server_fd(s) >= 0);
    unsigned second = add(s);
    assert_int_equal(unlisten(s, second), 0);
    assert_int_equal(dial(second), -1);
    mk_server_free(s);
}

/* The listener is closed while a connection waits in its queue. */
static void queued_connection_is_served_before_its_listener_closes(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    int fd = mk_server_fd(s), client = dial(port);
    send_request_on(client, "GET", "/hello");
    assert_int_equal(unlisten(s, port), 0);
    for (int i = 0; i < 3; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 100) == 1)
            assert_int_equal(mk_server_step(s), 1);
    }
    assert_holds(receive_all(client), "\r\n\r\nhello");
    assert_int_equal(dial(port), -1);
    mk_server_free(s);
}

/* ---- Handing over ---- */

static void sockets_move_to_another_server_without_a_lost_connection(void **state)
{
    (void)state;
    unsigned port;
    int fd, n = 0, clients[8 * WORKERS];
    struct mk_server *s = start(WORKERS, &port), *successor = mk_server_new(NULL);
    assert_int_equal(mk_server_add_route(successor, "GET /hello", respond_hello, NULL), 0);
    for (; (fd = mk_server_listener_fd(s, 0, (size_t)n)) >= 0; n++) {
        assert_int_equal(mk_server_listen_fd(successor, fd, false), 0);
        assert_int_equal(mk_server_listen_fd(successor, fd, false), -EINVAL); /* the same socket */
        close(fd);
    }
    assert_int_equal(fd, -ENOENT);
    assert_int_equal(n, WORKERS);
    mk_server_free(s);
    for (int i = 0; i < 8 * WORKERS; i++) { /* with this many, connections wait in every queue */
        clients[i] = dial(port);
        assert_true(clients[i] >= 0);
        send_request_on(clients[i], "GET", "/hello");
    }
    assert_int_equal(mk_server_start(successor, 3), 0); /* with another number of threads */
    for (int i = 0; i < 8 * WORKERS; i++)
        assert_holds(receive_all(clients[i]), "\r\n\r\nhello");
    mk_server_free(successor);
}

static void socket_of_the_program_is_added_at_run_time(void **state)
{
    (void)state;
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    unsigned port;
    struct mk_server *s = start(2, &port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(mk_server_listen_fd(s, fd, false), 0);
    assert_int_equal(mk_server_listen_fd(s, fd, false), -EINVAL);
    assert_holds(mk_server_error(s), "already has a Listen");
    unsigned own = ntohs(a.sin_port);
    int client;
    while ((client = dial(own)) < 0) /* a worker calls listen() */
        usleep(1000);
    send_request_on(client, "GET", "/hello");
    assert_holds(receive_all(client), "\r\n\r\nhello");
    assert_int_equal(unlisten(s, own), 0);
    mk_server_free(s);
    close(fd);
}

/* ---- Resources ---- */

static int count_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void change_and_count(struct mk_server *s, unsigned port)
{
    int before = 0;
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(unlisten(s, add(s)), 0);
        assert_holds(fetch(port, "GET", "/hello"), "\r\n\r\nhello"); /* the worker is running */
        if (i == 0)
            before = count_descriptors();
    }
    for (int i = 0; count_descriptors() > before; i++) {
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
    }
}

static void closed_listeners_and_freed_servers_keep_no_descriptors(void **state)
{
    (void)state;
    int before = count_descriptors();
    for (int i = 0; i < ROUNDS; i++) {
        unsigned port;
        struct mk_server *s = start(1, &port);
        if (i == 0)
            change_and_count(s, port);
        else
            (void)add(s);
        mk_server_free(s);
    }
    assert_int_equal(count_descriptors(), before);
}

/* ---- Load ---- */

struct load {
    unsigned port;
    atomic_bool is_done;
    atomic_int n_served, n_failed;
};

static void *send_requests(void *ctx)
{
    struct load *l = ctx;
    while (!atomic_load(&l->is_done)) {
        const char *answer = fetch(l->port, "GET", "/hello");
        atomic_fetch_add(strstr(answer, "\r\n\r\nhello") ? &l->n_served : &l->n_failed, 1);
    }
    return NULL;
}

static void *change_listeners(void *ctx)
{
    struct mk_server *s = ctx;
    unsigned port;
    for (int i = 0; i < ROUNDS; i++) {
        if (mk_server_listen(s, "127.0.0.1:0", &port))
            break; /* the server is stopping */
        if (i % 2)
            (void)!strlen(fetch(port, "GET", "/hello"));
        if (unlisten(s, port))
            break;
    }
    return NULL;
}

static void listener_is_undisturbed_by_changes_of_others_under_load(void **state)
{
    (void)state;
    pthread_t clients[CLIENTS], changers[2];
    struct load l = {0};
    struct mk_server *s = start(WORKERS, &l.port);
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&clients[i], NULL, send_requests, &l);
    for (int i = 0; i < 2; i++)
        pthread_create(&changers[i], NULL, change_listeners, s);
    for (int i = 0; i < 2; i++)
        pthread_join(changers[i], NULL);
    atomic_store(&l.is_done, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    assert_int_equal(atomic_load(&l.n_failed), 0);
    assert_true(atomic_load(&l.n_served) > 0);
    mk_server_free(s);
}

static void *change_until_stopped(void *ctx)
{
    unsigned port;
    while (!mk_server_listen(ctx, "127.0.0.1:0", &port) && !unlisten(ctx, port))
        ;
    return NULL;
}

static void stop_during_changes_ends_them(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        unsigned port;
        pthread_t changers[2];
        struct mk_server *s = start(WORKERS, &port);
        for (int j = 0; j < 2; j++)
            pthread_create(&changers[j], NULL, change_until_stopped, s);
        usleep(5000);
        mk_server_stop(s, i % 2 ? 1000 : 0);
        assert_int_equal(mk_server_wait(s), 0);
        for (int j = 0; j < 2; j++)
            pthread_join(changers[j], NULL);
        await_refusal(port);
        mk_server_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listener_added_at_run_time_serves),
        cmocka_unit_test(addresses_follow_the_changes),
        cmocka_unit_test(closed_listener_refuses_and_open_connections_continue),
        cmocka_unit_test(closed_address_can_be_used_again_at_once),
        cmocka_unit_test(unix_listener_comes_and_goes_with_its_file),
        cmocka_unit_test(errors_leave_the_listeners_unchanged),
        cmocka_unit_test(number_of_listeners_is_limited),
        cmocka_unit_test(calls_at_the_wrong_time_are_rejected),
        cmocka_unit_test(server_in_memory_opens_no_listener),
        cmocka_unit_test(handler_may_move_the_listener_of_its_connection),
        cmocka_unit_test(accept_filter_may_close_its_listener),
        cmocka_unit_test(caller_loop_applies_changes_in_its_next_step),
        cmocka_unit_test(listener_closed_before_any_step_closes_at_once),
        cmocka_unit_test(queued_connection_is_served_before_its_listener_closes),
        cmocka_unit_test(sockets_move_to_another_server_without_a_lost_connection),
        cmocka_unit_test(socket_of_the_program_is_added_at_run_time),
        cmocka_unit_test(closed_listeners_and_freed_servers_keep_no_descriptors),
        cmocka_unit_test(listener_is_undisturbed_by_changes_of_others_under_load),
        cmocka_unit_test(stop_during_changes_ends_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
