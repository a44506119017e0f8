/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_stop(): its deadline holds whatever the program does, and signal handlers may call it. */
#include "lib/embed.h"

#include <poll.h>
#include <signal.h>
#include <sys/time.h>

enum { DRAIN_MS = 200, PERIOD_US = 10000, ROUNDS_MAX = PATIENCE_S * 1000000 / PERIOD_US };

static _Atomic(struct mk_worker *) worker;

static enum mk_verdict wait_forever(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)response, (void)data;
    mk_request_set_handler_timeout(request, MK_FOREVER);
    atomic_store(&worker, mk_request_worker(request));
    return MK_WAIT;
}

static void do_nothing(void *ctx)
{
    (void)ctx;
}

/* A call that a program repeats while its server drains. It returns 0 until the server has ended. */
struct disturbance {
    struct mk_server *server;
    int (*disturb)(struct mk_server *s);
    atomic_bool has_ended;
    int rounds;
};

static int post(struct mk_server *s)
{
    (void)s;
    return mk_worker_post(atomic_load(&worker), do_nothing, NULL);
}

static int stop_later(struct mk_server *s)
{
    mk_server_stop(s, DRAIN_MS);
    return 0;
}

static void *disturb(void *ctx)
{
    struct disturbance *d = ctx;
    while (!atomic_load(&d->has_ended) && d->rounds < ROUNDS_MAX) {
        if (d->disturb(d->server))
            break; /* the worker no longer processes its queue */
        d->rounds++;
        usleep(PERIOD_US);
    }
    return NULL;
}

static int send_waiting_request(unsigned port)
{
    int client = dial(port);
    atomic_store(&worker, NULL);
    assert_int_equal(send(client, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", 32, 0), 32);
    return client;
}

static void await_worker(void)
{
    for (int i = 0; !atomic_load(&worker); i++) {
        assert_true(i < PATIENCE_S * 1000);
        usleep(1000);
    }
}

static void check_stop_ends(int (*fn)(struct mk_server *s))
{
    unsigned port;
    pthread_t thread;
    struct mk_server *s = server_with("GET /wait", wait_forever, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    int client = send_waiting_request(port);
    await_worker();
    struct disturbance d = {.server = s, .disturb = fn};
    mk_server_stop(s, DRAIN_MS);
    pthread_create(&thread, NULL, disturb, &d);
    assert_int_equal(mk_server_wait(s), 0);
    atomic_store(&d.has_ended, true);
    pthread_join(thread, NULL);
    assert_true(d.rounds > 0 && d.rounds < ROUNDS_MAX);
    close(client);
    mk_server_free(s);
}

static void stop_during_posts_keeps_its_deadline(void **state)
{
    (void)state;
    check_stop_ends(post);
}

static void stop_during_later_stops_keeps_its_deadline(void **state)
{
    (void)state;
    check_stop_ends(stop_later);
}

static void stop_with_shorter_deadline_overrides_earlier_stop(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /wait", wait_forever, NULL, &port);
    assert_int_equal(mk_server_start(s, 2), 0);
    int client = send_waiting_request(port);
    await_worker();
    mk_server_stop(s, MK_FOREVER);
    mk_server_stop(s, 10);
    assert_int_equal(mk_server_wait(s), 0);
    close(client);
    mk_server_free(s);
}

/* In the caller's loop, the descriptor becomes readable for posts as well as for the deadline. */
static void stop_in_steps_keeps_its_deadline(void **state)
{
    (void)state;
    unsigned port;
    struct mk_server *s = server_with("GET /wait", wait_forever, NULL, &port);
    struct pollfd p = {.fd = mk_server_fd(s), .events = POLLIN};
    int client = send_waiting_request(port), steps = 0, left = 1;
    while (!atomic_load(&worker)) {
        assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
        assert_int_equal(mk_server_step(s), 1);
    }
    mk_server_stop(s, DRAIN_MS);
    while (left == 1 && steps++ < ROUNDS_MAX) {
        (void)!mk_worker_post(atomic_load(&worker), do_nothing, NULL);
        usleep(1000);
        assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
        left = mk_server_step(s);
    }
    assert_int_equal(left, 0);
    close(client);
    mk_server_free(s);
}

static struct mk_server *signaled;
static atomic_int n_signals;

static void on_alarm(int number)
{
    (void)number;
    mk_server_stop(signaled, 60000);
    atomic_fetch_add(&n_signals, 1);
}

/* Signals interrupt mk_server_stop() at any instruction, and the signal handler calls it again in the same
 * thread: if the function held a lock, the signal handler would wait for it forever. */
static void stop_in_signal_handler_does_not_deadlock(void **state)
{
    (void)state;
    unsigned port;
    struct sigaction before, action = {.sa_handler = on_alarm};
    const struct itimerval often = {.it_interval.tv_usec = 50, .it_value.tv_usec = 50}, never = {0};
    signaled = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(signaled, 2), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 100000 || atomic_load(&n_signals) < 100; i++)
        mk_server_stop(signaled, 60000);
    mk_server_stop(signaled, 0);
    assert_int_equal(mk_server_wait(signaled), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    mk_server_free(signaled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_during_posts_keeps_its_deadline),
        cmocka_unit_test(stop_during_later_stops_keeps_its_deadline),
        cmocka_unit_test(stop_with_shorter_deadline_overrides_earlier_stop),
        cmocka_unit_test(stop_in_steps_keeps_its_deadline),
        cmocka_unit_test(stop_in_signal_handler_does_not_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
