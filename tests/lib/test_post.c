/* SPDX-License-Identifier: Apache-2.0 */
/* mk_server_post(): each worker makes the call once, in its own thread and in order; each accepted post is
 * completed even if the server stops. */
#include "lib/embed.h"

#include <poll.h>
#include <stdlib.h>

enum { THREADS = 4, POSTS = 200, POSTERS = 3 };

struct count {
    atomic_int calls[THREADS];
    atomic_int done;
    pthread_t threads[THREADS];
    atomic_int last; /* number of the last post, to check the order */
    atomic_bool is_out_of_order;
};

static void count_call(struct mk_worker *w, void *ctx)
{
    struct count *c = ctx;
    unsigned i = mk_worker_index(w);
    assert_int_equal(mk_worker_count(w), THREADS);
    c->threads[i] = pthread_self();
    atomic_fetch_add(&c->calls[i], 1);
}

static void count_done(void *ctx)
{
    struct count *c = ctx;
    atomic_fetch_add(&c->done, 1);
}

static void post_calls_function_once_in_each_thread(void **state)
{
    (void)state;
    unsigned port;
    struct count c = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, THREADS), 0);
    assert_int_equal(mk_server_post(s, count_call, count_done, &c), 0);
    wait_until(&c.done, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(atomic_load(&c.calls[i]), 1);
        for (int j = 0; j < i; j++)
            assert_false(pthread_equal(c.threads[i], c.threads[j]));
    }
    mk_server_free(s);
}

struct numbered {
    struct count *count;
    int number;
};

static void check_order(struct mk_worker *w, void *ctx)
{
    struct numbered *n = ctx;
    (void)w;
    if (atomic_exchange(&n->count->last, n->number) != n->number - 1)
        atomic_store(&n->count->is_out_of_order, true);
}

static void free_numbered(void *ctx)
{
    struct numbered *n = ctx;
    struct count *c = n->count;
    free(n);
    atomic_fetch_add(&c->done, 1);
}

static void posts_of_one_thread_keep_their_order(void **state)
{
    (void)state;
    unsigned port;
    struct count c = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, 1), 0);
    for (int i = 1; i <= POSTS; i++) {
        struct numbered *n = malloc(sizeof *n);
        *n = (struct numbered){&c, i};
        assert_int_equal(mk_server_post(s, check_order, free_numbered, n), 0);
    }
    wait_until(&c.done, POSTS);
    assert_false(atomic_load(&c.is_out_of_order));
    mk_server_free(s);
}

static void count_step(struct mk_worker *w, void *ctx)
{
    struct count *c = ctx;
    atomic_fetch_add(&c->calls[mk_worker_index(w)], 1);
}

static void post_makes_descriptor_of_a_stepped_server_readable(void **state)
{
    (void)state;
    unsigned port;
    struct count c = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    struct pollfd p = {.fd = mk_server_fd(s), .events = POLLIN};
    while (poll(&p, 1, 0) > 0)
        assert_int_equal(mk_server_step(s), 1);
    assert_int_equal(mk_server_post(s, count_step, NULL, &c), 0);
    assert_int_equal(atomic_load(&c.calls[0]), 0);
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    assert_int_equal(mk_server_step(s), 1);
    assert_int_equal(atomic_load(&c.calls[0]), 1);
    mk_server_free(s);
}

static void post_to_a_server_that_does_not_run_calls_nothing(void **state)
{
    (void)state;
    unsigned port;
    struct count c = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_post(NULL, count_call, count_done, &c), -EINVAL);
    assert_int_equal(mk_server_post(s, NULL, count_done, &c), -EINVAL);
    assert_int_equal(mk_server_post(s, count_call, count_done, &c), -ESHUTDOWN);
    assert_int_equal(mk_server_start(s, THREADS), 0);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_wait(s), 0);
    assert_int_equal(mk_server_post(s, count_call, count_done, &c), -ESHUTDOWN);
    mk_server_free(s);
    assert_int_equal(atomic_load(&c.done), 0);
    assert_int_equal(atomic_load(&c.calls[0]), 0);
}

/* Threads that post until the server refuses a call. */
struct poster {
    struct mk_server *server;
    struct count *count;
    int accepted;
};

static void *post_until_refused(void *ctx)
{
    struct poster *p = ctx;
    while (mk_server_post(p->server, count_step, count_done, p->count) == 0)
        p->accepted++;
    return NULL;
}

static void each_accepted_post_is_done_when_the_server_stops(void **state)
{
    (void)state;
    unsigned port;
    struct count c = {0};
    struct mk_server *s = server_with("GET /hello", respond_hello, NULL, &port);
    assert_int_equal(mk_server_start(s, THREADS), 0);
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){s, &c, 0};
        pthread_create(&threads[i], NULL, post_until_refused, &posters[i]);
    }
    while (!atomic_load(&c.calls[0]))
        usleep(100);
    mk_server_stop(s, 0);
    assert_int_equal(mk_server_wait(s), 0);
    int accepted = 0;
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
        accepted += posters[i].accepted;
    }
    assert_int_equal(atomic_load(&c.done), accepted);
    mk_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(post_calls_function_once_in_each_thread),
        cmocka_unit_test(posts_of_one_thread_keep_their_order),
        cmocka_unit_test(post_makes_descriptor_of_a_stepped_server_readable),
        cmocka_unit_test(post_to_a_server_that_does_not_run_calls_nothing),
        cmocka_unit_test(each_accepted_post_is_done_when_the_server_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
