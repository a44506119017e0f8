/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a connection: callbacks that count their calls and open no socket. */
#ifndef MK_UNIT_PACKAGES_CONN_OWNER_H
#define MK_UNIT_PACKAGES_CONN_OWNER_H

#include "unit/packages/conn_worker.h"

/* ---- Time ---- */

/* Ends the loop iteration. */
static void end_iteration(void)
{
    if (!iteration_end_is_set)
        return;
    iteration_end_is_set = false;
    iteration_end(iteration_ctx);
}

/* Lets time pass and fires the timer and the iteration callbacks. */
static void pass(uint64_t ms)
{
    uint64_t until = now_ms + ms;
    end_iteration();
    while (timer_at && timer_at <= until) {
        now_ms = timer_at;
        timer_at = 0;
        timer->on_due(timer);
        end_iteration();
    }
    now_ms = until;
}

/* ---- Owner ---- */

enum { TIMEOUT = 2000 };

static struct package_conn link_;
static bool is_refused; /* connect() fails at once */
static unsigned n_connects, n_closes, n_ups, n_downs, n_late, n_sends;
static int down_with;
static uint64_t connected_ms[64];

struct question {
    struct package_request request;
    bool is_over, was_sent;
    int error;
};

static void on_connect(struct package_conn *conn)
{
    connected_ms[n_connects++ % 64] = now_ms;
    package_conn_set_state(conn, PACKAGE_CONN_CONNECTING);
    if (is_refused)
        package_conn_fail_errno(conn, -ECONNREFUSED);
}

static void on_close(struct package_conn *conn)
{
    (void)conn;
    n_closes++;
}

static void on_up(struct package_conn *conn)
{
    assert_true(package_conn_is_ready(conn));
    n_ups++;
}

static void on_down(struct package_conn *conn, int error)
{
    assert_int_equal(conn->state.current, PACKAGE_CONN_DOWN);
    assert_null(conn->sent.first);
    down_with = error;
    n_downs++;
}

static void on_timeout(struct package_conn *conn)
{
    assert_int_not_equal(conn->state.current, PACKAGE_CONN_DOWN);
    n_late++;
}

static void send_all(struct package_conn *conn)
{
    assert_int_equal(conn->state.current, PACKAGE_CONN_READY);
    package_request_queue_append(&conn->sent, &conn->waiting);
    n_sends++;
}

static void finish(struct package_conn *conn, struct package_request *r, int error, bool is_sent)
{
    struct question *q = (struct question *)r;
    (void)conn;
    assert_false(q->is_over);
    *q = (struct question){.is_over = true, .was_sent = is_sent, .error = error};
}

static const struct package_conn_ops ops = {.section = "REDIS",
                                            .connect = on_connect,
                                            .close = on_close,
                                            .on_up = on_up,
                                            .on_down = on_down,
                                            .on_timeout = on_timeout,
                                            .send = send_all,
                                            .finish = finish};

static void setup(void)
{
    memset(&link_, 0, sizeof link_);
    now_ms = 1000000;
    timer_at = chance = 0;
    iteration_end_is_set = is_refused = is_out_of_memory = false;
    n_logged = n_timers_set = n_connects = n_closes = n_ups = n_downs = n_late = n_sends = 0;
    down_with = 0;
    logged[0] = 0;
    assert_int_equal(package_conn_init(&link_, NULL, &ops, MK_STR("main"), TIMEOUT), 0);
}

static void teardown(void)
{
    package_conn_fini(&link_);
    assert_int_equal(n_open, 0);
    assert_int_equal(timer_at, 0);
}

static void bring_up(void)
{
    package_conn_open(&link_);
    package_conn_mark_ready(&link_);
    assert_int_equal(link_.state.current, PACKAGE_CONN_READY);
}

static void add(struct question *q)
{
    *q = (struct question){.request.due_ms = now_ms + TIMEOUT};
    package_conn_enqueue(&link_, &q->request);
}

#endif
