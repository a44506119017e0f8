/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over a reconnecting connection. */
#include "unit/packages/conn_owner.h"

static void request_queue_is_fifo(void **state)
{
    struct package_request_queue a = {0}, b = {0};
    struct package_request r[4] = {{.due_ms = 10}, {.due_ms = 20}, {.due_ms = 30}, {.due_ms = 40}};
    (void)state;
    assert_null(package_request_queue_pop(&a));
    package_request_queue_push(&a, &r[0]);
    package_request_queue_append(&b, &a);
    assert_null(a.first);
    package_request_queue_push(&a, &r[1]);
    package_request_queue_push(&a, &r[2]);
    package_request_queue_append(&b, &a);
    package_request_queue_append(&b, &a);
    package_request_queue_push(&b, &r[3]);
    assert_int_equal(a.n, 0);
    assert_int_equal(b.n, 4);
    assert_null(package_request_queue_pop_due(&b, 9));
    assert_ptr_equal(package_request_queue_pop_due(&b, 10), &r[0]);
    for (size_t i = 1; i < MK_LEN(r); i++)
        assert_ptr_equal(package_request_queue_pop(&b), &r[i]);
    assert_int_equal(b.n, 0);
    assert_null(package_request_queue_pop_due(&b, 100));
    package_request_queue_push(&b, &r[0]);
    assert_ptr_equal(b.first, &r[0]);
    assert_null(b.first->next);
}

static void request_opens_connection_and_is_sent_at_iteration_end(void **state)
{
    static struct question a, b;
    (void)state;
    add(&a);
    add(&b);
    assert_int_equal(n_connects, 0);
    end_iteration();
    assert_int_equal(n_connects, 1);
    assert_int_equal(n_sends, 0);
    package_conn_mark_ready(&link_);
    assert_int_equal(n_sends, 0);
    end_iteration();
    assert_int_equal(n_sends, 1);
    assert_int_equal(link_.sent.n, 2);
    package_conn_finish_first_sent(&link_, 0);
    assert_true(a.is_over && a.was_sent && !a.error && !b.is_over);
    package_conn_finish_first_sent(&link_, -EPROTO);
    assert_int_equal(b.error, -EPROTO);
    end_iteration();
    assert_int_equal(n_sends, 1);
}

static void request_idle_connection_sends_nothing(void **state)
{
    (void)state;
    bring_up();
    end_iteration();
    assert_int_equal(n_sends, 0);
}

static void request_sent_fails_on_loss_and_unsent_reconnects(void **state)
{
    static struct question sent, unsent;
    (void)state;
    bring_up();
    add(&sent);
    end_iteration();
    add(&unsent);
    iteration_end_is_set = false;
    package_conn_fail(&link_, -ECONNRESET, "closed");
    assert_true(sent.is_over && sent.was_sent);
    assert_int_equal(sent.error, -ECONNRESET);
    assert_false(unsent.is_over);
    assert_true(iteration_end_is_set);
    end_iteration();
    assert_int_equal(n_connects, 2);
    package_conn_mark_ready(&link_);
    end_iteration();
    assert_ptr_equal(link_.sent.first, &unsent.request);
}

static void request_waits_for_server_until_timeout(void **state)
{
    static struct question q, late;
    (void)state;
    is_refused = true;
    add(&q);
    pass(500);
    add(&late);
    pass(TIMEOUT - 501);
    assert_false(q.is_over);
    pass(1);
    assert_true(q.is_over && !q.was_sent);
    assert_int_equal(q.error, -ECONNREFUSED); /* as the error text says */
    assert_string_equal(package_conn_error_reason(&link_), "Connection refused");
    assert_false(late.is_over);
}

static void request_without_failed_attempt_times_out(void **state)
{
    static struct question q;
    (void)state;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "the server has closed the connection");
    q.request.due_ms = now_ms + 100;
    package_conn_enqueue(&link_, &q.request);
    pass(100);
    assert_int_equal(q.error, -ETIMEDOUT);
}

static void request_waiting_fails_when_server_is_unavailable(void **state)
{
    static struct question q;
    (void)state;
    is_refused = true;
    package_conn_open(&link_);
    now_ms += TIMEOUT - 100;
    assert_false(package_conn_is_unavailable(&link_));
    add(&q);
    pass(99);
    assert_false(q.is_over);
    now_ms++;
    assert_true(package_conn_is_unavailable(&link_));
    pass(1000);
    assert_int_equal(q.error, -ECONNREFUSED);
    assert_false(q.was_sent);
}

static void request_unavailable_server_rejects_until_next_attempt(void **state)
{
    (void)state;
    is_refused = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(package_conn_check_capacity(&link_, 1), 0);
        package_conn_open(&link_);
        now_ms += 1000;
    }
    package_conn_open(&link_);
    assert_int_equal(package_conn_check_capacity(&link_, 1), -ECONNREFUSED);
    now_ms += 999;
    assert_int_equal(package_conn_check_capacity(&link_, 1), -ECONNREFUSED);
    now_ms++;
    assert_int_equal(package_conn_check_capacity(&link_, 1), 0);
}

static void request_capacity_is_limited(void **state)
{
    static struct question a, b;
    (void)state;
    bring_up();
    add(&a);
    end_iteration();
    assert_int_equal(package_conn_check_capacity(&link_, 2), 0);
    add(&b);
    assert_int_equal(package_conn_check_capacity(&link_, 2), -EBUSY);
    package_conn_finish_first_sent(&link_, 0);
    assert_int_equal(package_conn_check_capacity(&link_, 2), 0);
}

static void request_waiting_fails_on_authentication_error(void **state)
{
    static struct question q;
    (void)state;
    add(&q);
    end_iteration();
    package_conn_fail(&link_, -ENOKEY, "wrong password");
    assert_int_equal(q.error, -ENOKEY);
    assert_false(q.was_sent);
}

static void request_fails_fast_after_failed_attempt(void **state)
{
    static struct question a, b;
    (void)state;
    link_.fails_fast = true;
    bring_up();
    add(&a);
    package_conn_fail(&link_, -ECONNRESET, "closed");
    assert_false(a.is_over);
    end_iteration();
    package_conn_fail(&link_, -ECONNREFUSED, "refused");
    assert_int_equal(a.error, -ECONNREFUSED);
    add(&b);
    pass(49);
    assert_false(b.is_over);
    is_refused = true;
    pass(1);
    assert_int_equal(b.error, -ECONNREFUSED);
}

static void request_late_reply_closes_connection(void **state)
{
    static struct question a, b, c;
    (void)state;
    bring_up();
    add(&a);
    pass(1000);
    add(&b);
    pass(TIMEOUT - 1001);
    assert_int_equal(link_.state.current, PACKAGE_CONN_READY);
    add(&c);
    iteration_end_is_set = false;
    pass(1);
    assert_int_equal(n_late, 1);
    assert_int_equal(a.error, -ETIMEDOUT);
    assert_int_equal(b.error, -ETIMEDOUT);
    assert_false(c.is_over);
    assert_string_equal(package_conn_error_reason(&link_), "no reply within Timeout");
    assert_int_equal(n_connects, 2);
}

static void request_timeouts_are_separate(void **state)
{
    static struct question a, b;
    (void)state;
    bring_up();
    add(&a);
    pass(1000);
    add(&b);
    pass(500);
    package_conn_finish_first_sent(&link_, 0);
    pass(TIMEOUT - 501);
    assert_int_equal(link_.state.current, PACKAGE_CONN_READY);
    pass(1);
    assert_int_equal(b.error, -ETIMEDOUT);
}

static void request_reuses_running_timer(void **state)
{
    static struct question q[100];
    (void)state;
    bring_up();
    n_timers_set = 0;
    for (size_t i = 0; i < MK_LEN(q); i++) {
        add(&q[i]);
        end_iteration();
        package_conn_finish_first_sent(&link_, 0);
    }
    assert_int_equal(n_timers_set, 0); /* the requests reuse the timer of the attempt */
    pass(10ul * TIMEOUT);
    assert_int_equal(n_timers_set, 0);
    add(&q[0]);
    assert_int_equal(n_timers_set, 1);
    package_request_queue_pop(&link_.waiting);
}

static void request_earlier_deadline_rearms_timer(void **state)
{
    static struct question late, early;
    (void)state;
    late.request.due_ms = UINT64_MAX;
    bring_up();
    pass(TIMEOUT);
    package_conn_enqueue(&link_, &late.request);
    end_iteration();
    assert_int_equal(timer_at, 0);
    early.request.due_ms = now_ms + 100;
    package_conn_enqueue(&link_, &early.request);
    iteration_end_is_set = false;
    pass(100);
    assert_int_equal(early.error, -ETIMEDOUT);
    assert_false(late.is_over);
}

static void request_fini_fails_all(void **state)
{
    static struct question sent, waiting;
    (void)state;
    bring_up();
    add(&sent);
    end_iteration();
    add(&waiting);
    package_conn_fini(&link_);
    assert_int_equal(sent.error, -ECANCELED);
    assert_int_equal(waiting.error, -ECANCELED);
    assert_true(sent.was_sent && !waiting.was_sent);
    assert_int_equal(link_.state.current, PACKAGE_CONN_DOWN);
    assert_int_equal(n_closes, 1);
    package_conn_fini(&link_);
    assert_int_equal(n_closes, 1);
}

static void request_conn_init_without_memory_fails(void **state)
{
    struct package_conn conn = {0};
    (void)state;
    is_out_of_memory = true;
    assert_int_equal(package_conn_init(&conn, NULL, &ops, MK_STR("main"), TIMEOUT), -ENOMEM);
    package_conn_fini(&conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(request_queue_is_fifo, setup, teardown),
        fixture_test(request_opens_connection_and_is_sent_at_iteration_end, setup, teardown),
        fixture_test(request_idle_connection_sends_nothing, setup, teardown),
        fixture_test(request_sent_fails_on_loss_and_unsent_reconnects, setup, teardown),
        fixture_test(request_waits_for_server_until_timeout, setup, teardown),
        fixture_test(request_without_failed_attempt_times_out, setup, teardown),
        fixture_test(request_waiting_fails_when_server_is_unavailable, setup, teardown),
        fixture_test(request_unavailable_server_rejects_until_next_attempt, setup, teardown),
        fixture_test(request_capacity_is_limited, setup, teardown),
        fixture_test(request_waiting_fails_on_authentication_error, setup, teardown),
        fixture_test(request_fails_fast_after_failed_attempt, setup, teardown),
        fixture_test(request_late_reply_closes_connection, setup, teardown),
        fixture_test(request_timeouts_are_separate, setup, teardown),
        fixture_test(request_reuses_running_timer, setup, teardown),
        fixture_test(request_earlier_deadline_rearms_timer, setup, teardown),
        fixture_test(request_fini_fails_all, setup, teardown),
        fixture_test(request_conn_init_without_memory_fails, setup, teardown),
    };
    return cmocka_run_group_tests_name("package_conn requests", tests, NULL, NULL);
}
