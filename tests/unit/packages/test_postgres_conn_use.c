/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing, reserving and retiring a connection to PostgreSQL. */
#include <postgres/conn_use.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static struct postgres_conn conn;

static void setup(void)
{
    memset(&conn, 0, sizeof conn);
}

/* The states of package_conn.c that these tests enter, with only the transitions that they need. */
static const struct mk_state_table base_states = {
    MK_STATE_ROW(PACKAGE_CONN_DOWN, "down", MK_STATE_TO(PACKAGE_CONN_READY)),
    MK_STATE_ROW(PACKAGE_CONN_READY, "up",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_EXCLUSIVE)),
    MK_STATE_ROW(PACKAGE_CONN_EXCLUSIVE, "exclusive", MK_STATE_TO(PACKAGE_CONN_READY)),
};

static void set_base_state(enum package_conn_state to)
{
    static const struct mk_state_machine base = {
        .name = "base", .states = &base_states, .n_states = PACKAGE_CONN_EXCLUSIVE + 1};
    mk_state_move(&conn.base.state, &base, &conn, to);
}

static void connect_up(void)
{
    set_base_state(PACKAGE_CONN_READY);
}

/* Moves the connection as package_conn_fail() does. */
static void lose_connection(void)
{
    postgres_conn_on_close(&conn);
    set_base_state(PACKAGE_CONN_DOWN);
}

static void conn_use_shared_connection_takes_statements_while_it_is_up(void **state)
{
    (void)state;
    assert_false(postgres_conn_can_send(&conn));
    connect_up();
    assert_true(postgres_conn_can_send(&conn));
    conn.cancel = (struct postgres_cancel *)(void *)&conn;
    assert_false(postgres_conn_can_send(&conn));
}

static void conn_use_reserved_connection_is_shared_again_after_release(void **state)
{
    (void)state;
    connect_up();
    postgres_conn_reserve(&conn);
    assert_true(postgres_conn_is_reserved(&conn));
    assert_false(postgres_conn_can_send(&conn));
    postgres_conn_release(&conn);
    assert_false(postgres_conn_is_reserved(&conn));
    assert_true(postgres_conn_can_send(&conn));
}

/* The ROLLBACK of an abandoned transaction may still be in flight: no other handler may use this session. */
static void conn_use_changed_session_is_not_shared_after_release(void **state)
{
    (void)state;
    connect_up();
    postgres_conn_reserve(&conn);
    postgres_conn_retire(&conn);
    assert_true(postgres_conn_is_reserved(&conn));
    postgres_conn_release(&conn);
    assert_false(postgres_conn_is_reserved(&conn));
    assert_true(postgres_conn_is_retired(&conn));
    assert_false(postgres_conn_can_send(&conn));
    lose_connection();
    assert_false(postgres_conn_is_retired(&conn));
    connect_up();
    assert_true(postgres_conn_can_send(&conn));
}

static void conn_use_retired_connection_takes_no_more_statements(void **state)
{
    (void)state;
    connect_up();
    postgres_conn_retire(&conn);
    postgres_conn_retire(&conn);
    assert_true(postgres_conn_is_retired(&conn));
    assert_false(postgres_conn_can_send(&conn));
}

static void conn_use_reservation_outlives_the_connection(void **state)
{
    (void)state;
    connect_up();
    postgres_conn_reserve(&conn);
    postgres_conn_retire(&conn);
    lose_connection();
    assert_true(postgres_conn_is_reserved(&conn));
    postgres_conn_retire(&conn); /* without a session, there is nothing to retire */
    postgres_conn_release(&conn);
    connect_up();
    assert_true(postgres_conn_can_send(&conn));
}

static void conn_use_may_be_retired_during_a_copy(void **state)
{
    (void)state;
    connect_up();
    postgres_conn_reserve(&conn);
    set_base_state(PACKAGE_CONN_EXCLUSIVE);
    postgres_conn_retire(&conn);
    set_base_state(PACKAGE_CONN_READY);
    postgres_conn_release(&conn);
    assert_true(postgres_conn_is_retired(&conn));
}

static void reserve_retired_connection(void)
{
    connect_up();
    postgres_conn_retire(&conn);
    postgres_conn_reserve(&conn);
}

static void release_shared_connection(void)
{
    connect_up();
    postgres_conn_reserve(&conn);
    postgres_conn_release(&conn);
    postgres_conn_release(&conn);
}

static bool aborts(void (*misuse)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        misuse();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void conn_use_forbidden_transition_aborts(void **state)
{
    (void)state;
    assert_true(aborts(reserve_retired_connection));
    assert_true(aborts(release_shared_connection));
    assert_false(aborts(connect_up));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conn_use_shared_connection_takes_statements_while_it_is_up, setup, NULL),
        fixture_test(conn_use_reserved_connection_is_shared_again_after_release, setup, NULL),
        fixture_test(conn_use_changed_session_is_not_shared_after_release, setup, NULL),
        fixture_test(conn_use_retired_connection_takes_no_more_statements, setup, NULL),
        fixture_test(conn_use_reservation_outlives_the_connection, setup, NULL),
        fixture_test(conn_use_may_be_retired_during_a_copy, setup, NULL),
        fixture_test(conn_use_forbidden_transition_aborts, setup, NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
