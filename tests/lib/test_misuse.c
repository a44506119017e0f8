/* SPDX-License-Identifier: Apache-2.0 */
/* A program that calls functions in the wrong order, twice, or from the wrong thread gets errors. Checks
 * that only debug builds can make are skipped in other builds. */
#include <monkey/request_ref.h>
#include <monkey/test_client.h>

#include "lib/embed.h"

static void calls_after_start_are_refused(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_step(s), -EBUSY);
    assert_int_equal(mk_server_wait(s), 0);
    assert_int_equal(mk_server_start(s, 0), -EINVAL);
    assert_int_equal(mk_server_start(s, 100000), -EINVAL);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_int_equal(mk_server_start(s, 1), -EBUSY);
    assert_int_equal(mk_server_run(s), -EBUSY);
    assert_int_equal(mk_server_fd(s), -EBUSY);
    assert_int_equal(mk_server_step(s), -EBUSY);
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", "off"), -EBUSY);
    assert_int_equal(mk_server_add_section(s, "LOCATION"), -EBUSY);
    assert_int_equal(mk_server_add_vhost(s, "a", NULL), -EBUSY);
    assert_int_equal(mk_server_add_route(s, "GET /x", respond_hello, NULL), -EBUSY);
    assert_int_equal(mk_server_add_plugin(s, NULL), -EBUSY);
    assert_int_equal(mk_server_load_config(s, "/etc"), -EBUSY);
    assert_holds(mk_server_error(s), "was started");
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_stop(s, MK_FOREVER);
    mk_server_stop(s, 0);
    mk_server_stop(s, 5);
    assert_int_equal(mk_server_wait(s), 0);
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_start(s, 1), -EBUSY);
    mk_server_free(s);
}

static void null_arguments_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mk_server_set(NULL, "SERVER", "KeepAlive", "off"), -EINVAL);
    assert_int_equal(mk_server_start(NULL, 1), -EINVAL);
    assert_int_equal(mk_server_run(NULL), -EINVAL);
    assert_int_equal(mk_server_fd(NULL), -EINVAL);
    assert_int_equal(mk_server_step(NULL), -EINVAL);
    assert_int_equal(mk_server_wait(NULL), -EINVAL);
    assert_int_equal(mk_server_address(NULL, 0, NULL, 0), -ENOENT);
    mk_server_stop(NULL, 0);
    mk_server_free(NULL);
    assert_int_equal(mk_request_ref_resume(NULL, NULL, NULL), -EINVAL);
    assert_true(mk_request_ref_is_gone(NULL));
    assert_int_equal(mk_test_client_step(NULL, 0), -EINVAL);
}

#ifndef NDEBUG
static void server_freed_twice_is_an_error(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    mk_server_free(s);
    mk_server_free(s);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_wait(s), -EINVAL);
    assert_int_equal(mk_server_start(s, 1), -EINVAL);
    assert_int_equal(mk_server_set(s, "SERVER", "KeepAlive", "off"), -EINVAL);
    assert_holds(mk_server_error(s), "it was freed");
}

static void test_client_closed_twice_is_an_error(void **state)
{
    (void)state;
    unsigned port;
    struct mk_test_client_response answer;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    struct mk_test_client *p = mk_test_client_open(s);
    assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, &answer), 0);
    mk_test_client_close(p);
    mk_test_client_close(p);
    assert_int_equal(mk_test_client_request(p, "GET", "/", NULL, 0, MK_STR_NULL, &answer), -EINVAL);
    assert_int_equal(mk_test_client_send(p, MK_STR("GET")), -EINVAL);
    assert_int_equal(mk_test_client_step(p, 0), -EINVAL);
    assert_null(mk_test_client_received(p).p);
    mk_server_free(s);
}

static enum mk_verdict free_request_ref_twice(struct mk_request *request, struct mk_response *response,
                                              void *data)
{
    struct mk_request_ref *t = mk_request_ref_new(request);
    mk_request_ref_free(t);
    mk_request_ref_free(t);
    assert_true(mk_request_ref_is_gone(t));
    assert_int_equal(mk_request_ref_resume(t, NULL, NULL), -EINVAL);
    return respond_hello(request, response, data);
}

static void request_ref_freed_twice_is_an_error(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", free_request_ref_twice, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
}
#endif

/* ---- Callbacks that call the library ---- */

static struct mk_server *around;
static atomic_int n_notified;

static void count_refusals(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx;
    (void)level;
    (void)text;
    atomic_fetch_add(&n_notified, 1);
    mk_server_free(around); /* refused, but not logged again */
}

static enum mk_verdict misbehave(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_server_free(around);
    assert_int_equal(mk_server_wait(around), -EDEADLK);
    assert_int_equal(mk_server_start(around, 1), -EBUSY);
    assert_int_equal(mk_server_step(around), -EBUSY);
    assert_int_equal(mk_server_set(around, "SERVER", "KeepAlive", "off"), -EBUSY);
    return respond_hello(request, response, data);
}

static struct mk_server *misbehaving(unsigned *port)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = count_refusals};
    struct mk_server *s = around = mk_server_new(&options);
    atomic_store(&n_notified, 0);
    assert_int_equal(mk_server_add_route(s, "GET /", misbehave, NULL), 0);
    assert_int_equal(mk_server_listen(s, "127.0.0.1:0", port), 0);
    return s;
}

static void handler_cannot_free_its_server(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = misbehaving(&port);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_notified), 1);
}

static void handler_cannot_free_its_server_during_step(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = misbehaving(&port);
    assert_true(mk_server_fd(s) >= 0);
    int client = dial(port);
    send_request_on(client, "GET", "/");
    while (atomic_load(&n_notified) == 0)
        assert_int_equal(mk_server_step(s), 1);
    assert_holds(receive_all(client), "hello");
    mk_server_free(s);
}

static enum mk_verdict stop_all(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_server_stop(around, MK_FOREVER);
    return respond_hello(request, response, data);
}

static void handler_may_stop_its_server(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = around = server_with("GET /", stop_all, NULL, &port);
    assert_int_equal(mk_server_start(s, 3), 0);
    assert_holds(fetch(port, "GET", "/"), "hello");
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_free(s);
}

static int start_again(struct mk_config *config, void **data)
{
    (void)config;
    *data = NULL;
    assert_int_equal(mk_server_start(around, 1), -EBUSY);
    assert_int_equal(mk_server_set(around, "SERVER", "KeepAlive", "off"), -EBUSY);
    assert_int_equal(mk_server_listen(around, "127.0.0.1:0", NULL), -EBUSY);
    assert_int_equal(mk_server_unlisten(around, "127.0.0.1:1"), -EBUSY);
    return 0;
}

static void plugin_cannot_start_the_server_that_loads_it(void **state)
{
    static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "eager", .load = start_again};
    (void)state;
    unsigned port;
    struct mk_server *s = around = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_plugin(s, &plugin), 0);
    assert_int_equal(mk_server_start(s, 1), 0);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_free(s);
}

/* Body sources and resumed request references are callbacks like handlers. */
static void misbehave_anywhere(void)
{
    mk_server_free(around);
    assert_int_equal(mk_server_wait(around), -EDEADLK);
    assert_int_equal(mk_server_step(around), -EBUSY);
    assert_int_equal(mk_server_fd(around), -EBUSY);
}

static ssize_t pull_badly(void *ctx, char *buffer, size_t cap)
{
    unsigned *n = ctx;
    misbehave_anywhere();
    memset(buffer, 'x', cap > 3 ? 3 : cap);
    return (*n)++ ? 0 : 3;
}

static void close_badly(void *ctx)
{
    (void)ctx;
    misbehave_anywhere();
}

static enum mk_verdict send_badly(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_badly, .close = close_badly};
    unsigned *n = mk_request_alloc(request, sizeof *n);
    (void)data;
    *n = 0;
    return mk_response_set_body_source(response, &ops, n, MK_LENGTH_UNKNOWN) ? MK_ERROR : MK_DONE;
}

static void resume_badly(struct mk_request *request, void *ctx)
{
    struct mk_request_ref *t = ctx;
    misbehave_anywhere();
    if (request)
        mk_request_set_data(request, t);
    assert_int_equal(mk_request_ref_resume(t, NULL, NULL), 0); /* resumes the request once more */
    mk_request_ref_free(t);
}

static enum mk_verdict wait_badly(struct mk_request *request, struct mk_response *response, void *data)
{
    static const char key;
    if (mk_request_data(request))
        return respond_hello(request, response, data);
    if (!mk_request_attached(request, &key)) {
        struct mk_request_ref *t = mk_request_ref_new(request);
        assert_int_equal(mk_request_attach(request, &key, t, NULL), 0);
        assert_int_equal(mk_request_ref_resume(t, resume_badly, t), 0);
    }
    return MK_WAIT;
}

static void body_source_and_resumed_request_cannot_free_server(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = misbehaving(&port);
    assert_int_equal(mk_server_add_route(s, "GET /source", send_badly, NULL), 0);
    assert_int_equal(mk_server_add_route(s, "GET /ticket", wait_badly, NULL), 0);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_holds(fetch(port, "GET", "/source"), "\r\nxxx\r\n0\r\n");
    assert_holds(fetch(port, "GET", "/ticket"), "hello");
    mk_server_free(s);
    assert_true(atomic_load(&n_notified) >= 3);
}

/* ---- Calls from the wrong thread ---- */

static void server_run_by_another_thread_is_not_freed(void **state)
{
    (void)state;
    unsigned port;
    pthread_t thread;
    struct mk_server *s = misbehaving(&port);
    pthread_create(&thread, NULL, run_server, s);
    assert_holds(fetch(port, "GET", "/"), "hello");
    atomic_store(&n_notified, 0);
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_notified), 1);
    assert_holds(fetch(port, "GET", "/"), "hello");
    mk_server_stop(s, 0);
    pthread_join(thread, NULL);
    mk_server_free(s);
}

static atomic_int n_inside, may_leave;

static enum mk_verdict linger(struct mk_request *request, struct mk_response *response, void *data)
{
    atomic_store(&n_inside, 1);
    for (int i = 0; !atomic_load(&may_leave) && i < PATIENCE_S * 1000; i++)
        usleep(1000);
    return respond_hello(request, response, data);
}

static void *step(void *s)
{
    for (int i = 0; !atomic_load(&may_leave) && i < PATIENCE_S * 1000; i++) {
        assert_int_equal(mk_server_step(s), 1);
        usleep(1000);
    }
    return NULL;
}

static void step_excludes_steps_of_other_threads(void **state)
{
    (void)state;
    unsigned port;
    pthread_t thread;
    struct mk_server *s = misbehaving(&port);
    assert_int_equal(mk_server_add_route(s, "GET /linger", linger, NULL), 0);
    assert_true(mk_server_fd(s) >= 0);
    int client = dial(port);
    send_request_on(client, "GET", "/linger");
    pthread_create(&thread, NULL, step, s);
    wait_until(&n_inside, 1);
    assert_int_equal(mk_server_step(s), -EBUSY);
    assert_holds(mk_server_error(s), "another thread is in mk_server_step()");
    mk_server_free(s);
    assert_int_equal(atomic_load(&n_notified), 1);
    atomic_store(&may_leave, 1);
    pthread_join(thread, NULL);
    mk_server_free(s);
    close(client);
}

/* ---- Early and late stops ---- */

static void stop_may_precede_start(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_run(s), 0);
    mk_server_free(s);
    s = server_with("GET /", respond_hello, NULL, &port);
    mk_server_stop(s, 100);
    assert_int_equal(mk_server_start(s, 2), 0);
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_free(s);
}

/* A plugin that cannot start in the second of three threads. */
static int start_one(struct mk_worker *worker, void *data)
{
    (void)data;
    return mk_worker_index(worker) == 1 ? -EPERM : 0;
}

static void thread_that_cannot_start_is_an_error(void **state)
{
    static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "lazy", .worker_start = start_one};
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /", respond_hello, NULL, &port);
    assert_int_equal(mk_server_add_plugin(s, &plugin), 0);
    assert_int_equal(mk_server_start(s, 3), -EPERM);
    assert_holds(mk_server_error(s), "cannot start 3 threads");
    mk_server_free(s);
}

/* Waits forever. */
static enum mk_verdict wait_forever(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)response;
    atomic_fetch_add((atomic_int *)data, 1);
    return MK_WAIT;
}

static void requests_in_progress_do_not_delay_stop(void **state)
{
    static atomic_int n_waiting;
    (void)state;
    unsigned port;
    int clients[4];
    struct mk_server *s = server_with("GET /", wait_forever, &n_waiting, &port);
    assert_int_equal(mk_server_start(s, 2), 0);
    for (size_t i = 0; i < MK_LEN(clients); i++) {
        clients[i] = dial(port);
        send_request_on(clients[i], "GET", "/");
    }
    wait_until(&n_waiting, MK_LEN(clients));
    mk_server_stop(s, MK_FOREVER);
    mk_server_stop(s, 10); /* a short deadline */
    assert_int_equal(mk_server_wait(s), 0);
    mk_server_free(s);
    for (size_t i = 0; i < MK_LEN(clients); i++)
        close(clients[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_after_start_are_refused),
        cmocka_unit_test(null_arguments_are_refused),
#ifndef NDEBUG
        cmocka_unit_test(server_freed_twice_is_an_error),
        cmocka_unit_test(test_client_closed_twice_is_an_error),
        cmocka_unit_test(request_ref_freed_twice_is_an_error),
#endif
        cmocka_unit_test(handler_cannot_free_its_server),
        cmocka_unit_test(handler_cannot_free_its_server_during_step),
        cmocka_unit_test(body_source_and_resumed_request_cannot_free_server),
        cmocka_unit_test(server_run_by_another_thread_is_not_freed),
        cmocka_unit_test(step_excludes_steps_of_other_threads),
        cmocka_unit_test(handler_may_stop_its_server),
        cmocka_unit_test(plugin_cannot_start_the_server_that_loads_it),
        cmocka_unit_test(stop_may_precede_start),
        cmocka_unit_test(thread_that_cannot_start_is_an_error),
        cmocka_unit_test(requests_in_progress_do_not_delay_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
