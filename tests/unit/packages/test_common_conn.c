/* SPDX-License-Identifier: Apache-2.0 */
/* A reconnecting connection: states, back-off, log lines, errors. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/packages/conn_owner.h"

/* ---- States ---- */

/* Moves the connection from DOWN to this state. */
static void reach(struct package_conn *conn, enum package_conn_state to)
{
    static const enum package_conn_state before[] = {[PACKAGE_CONN_RESOLVING] = PACKAGE_CONN_DOWN,
                                                     [PACKAGE_CONN_CONNECTING] = PACKAGE_CONN_DOWN,
                                                     [PACKAGE_CONN_HANDSHAKE] = PACKAGE_CONN_CONNECTING,
                                                     [PACKAGE_CONN_MIGRATING] = PACKAGE_CONN_CONNECTING,
                                                     [PACKAGE_CONN_READY] = PACKAGE_CONN_HANDSHAKE,
                                                     [PACKAGE_CONN_EXCLUSIVE] = PACKAGE_CONN_READY};
    if (to == PACKAGE_CONN_DOWN)
        return;
    reach(conn, before[to]);
    package_conn_set_state(conn, to);
}

/* Tries the transition in a child process, because a forbidden transition aborts. */
static bool may_move(enum package_conn_state from, enum package_conn_state to)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        struct package_conn conn = {.ops = &ops, .name = MK_STR("main")};
        reach(&conn, from);
        package_conn_set_state(&conn, to);
        _exit(conn.state.current == to ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return true;
    }
    assert_int_equal(WTERMSIG(status), SIGABRT);
    return false;
}

static void conn_state_machine_allows_only_listed_transitions(void **state)
{
    static const char *const allowed[] = {
        /* to:                      DRCGMUE */
        [PACKAGE_CONN_DOWN] = "0110000",       [PACKAGE_CONN_RESOLVING] = "1010000",
        [PACKAGE_CONN_CONNECTING] = "1101110", [PACKAGE_CONN_HANDSHAKE] = "1000010",
        [PACKAGE_CONN_MIGRATING] = "1000010",  [PACKAGE_CONN_READY] = "1000001",
        [PACKAGE_CONN_EXCLUSIVE] = "1000010"};
    (void)state;
    for (int from = PACKAGE_CONN_DOWN; from <= PACKAGE_CONN_EXCLUSIVE; from++)
        for (int to = PACKAGE_CONN_DOWN; to <= PACKAGE_CONN_EXCLUSIVE; to++) {
            bool is_allowed = may_move((enum package_conn_state)from, (enum package_conn_state)to);
            assert_int_equal(is_allowed, allowed[from][to] == '1');
        }
}

static void conn_state_distinguishes_attempt_from_connection(void **state)
{
    (void)state;
    for (int i = PACKAGE_CONN_DOWN; i <= PACKAGE_CONN_EXCLUSIVE; i++) {
        struct package_conn conn = {.ops = &ops};
        reach(&conn, (enum package_conn_state)i);
        bool opens = i == PACKAGE_CONN_RESOLVING || i == PACKAGE_CONN_CONNECTING ||
                     i == PACKAGE_CONN_HANDSHAKE || i == PACKAGE_CONN_MIGRATING;
        assert_int_equal(package_conn_is_opening(&conn), opens);
        assert_int_equal(package_conn_is_ready(&conn),
                         i == PACKAGE_CONN_READY || i == PACKAGE_CONN_EXCLUSIVE);
    }
}

static void conn_open_starts_one_attempt_at_a_time(void **state)
{
    (void)state;
    package_conn_open(&link_);
    package_conn_open(&link_);
    assert_int_equal(n_connects, 1);
    package_conn_mark_ready(&link_);
    package_conn_open(&link_);
    assert_int_equal(n_connects, 1);
    assert_int_equal(n_ups, 1);
    assert_int_equal(n_closes, 0);
}

static void conn_attempt_times_out(void **state)
{
    (void)state;
    package_conn_open(&link_);
    pass(TIMEOUT - 1);
    assert_int_equal(link_.state.current, PACKAGE_CONN_CONNECTING);
    pass(1);
    assert_int_equal(link_.state.current, PACKAGE_CONN_DOWN);
    assert_int_equal(down_with, -ETIMEDOUT);
    assert_int_equal(n_late, 1);
    assert_string_equal(logged, "[REDIS] main: it did not respond within Timeout");
}

static void conn_handshake_shares_timeout_of_attempt(void **state)
{
    (void)state;
    package_conn_open(&link_);
    pass(TIMEOUT - 100);
    package_conn_set_state(&link_, PACKAGE_CONN_HANDSHAKE);
    pass(99);
    assert_int_equal(link_.state.current, PACKAGE_CONN_HANDSHAKE);
    pass(1);
    assert_int_equal(link_.state.current, PACKAGE_CONN_DOWN);
}

static void conn_migration_has_no_timeout(void **state)
{
    (void)state;
    package_conn_open(&link_);
    pass(TIMEOUT - 1);
    package_conn_set_state(&link_, PACKAGE_CONN_MIGRATING);
    pass(100ul * TIMEOUT);
    assert_int_equal(link_.state.current, PACKAGE_CONN_MIGRATING);
    assert_int_equal(n_late, 0);
    package_conn_mark_ready(&link_);
    assert_int_equal(n_ups, 1);
}

static void conn_ready_may_stay_idle(void **state)
{
    (void)state;
    bring_up();
    pass(100ul * TIMEOUT);
    assert_int_equal(link_.state.current, PACKAGE_CONN_READY);
    assert_int_equal(timer_at, 0);
    assert_int_equal(n_late, 0);
}

/* ---- Back-off ---- */

static void conn_attempts_back_off_up_to_a_second(void **state)
{
    static const uint64_t pauses[] = {50, 100, 200, 400, 800, 1000, 1000};
    static struct question q;
    (void)state;
    is_refused = true;
    link_.timeout_ms = 100000;
    add(&q);
    q.request.due_ms = now_ms + 100000;
    pass(10000);
    assert_true(n_connects > MK_LEN(pauses));
    for (size_t i = 0; i < MK_LEN(pauses); i++)
        assert_int_equal(connected_ms[i + 1] - connected_ms[i], pauses[i]);
    assert_false(q.is_over);
}

static void conn_back_off_has_jitter_of_at_most_half(void **state)
{
    static const struct {
        uint32_t chance, first, second, last;
    } cases[] = {{0, 50, 100, 1000},
                 {1, 49, 99, 999},
                 {25, 25, 75, 975},
                 {26, 50, 74, 974},
                 {UINT32_MAX, 29, 100, 994}};
    (void)state;
    is_refused = true;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        uint32_t first = 0, second = 0, last = 0;
        chance = cases[i].chance;
        link_.backoff_ms = 0;
        for (int attempt = 0; attempt < 8; attempt++) {
            now_ms = link_.retry_ms;
            package_conn_open(&link_);
            last = (uint32_t)(link_.retry_ms - now_ms);
            assert_in_range(last, link_.backoff_ms / 2, link_.backoff_ms);
            first = attempt == 0 ? last : first;
            second = attempt == 1 ? last : second;
        }
        assert_int_equal(first, cases[i].first);
        assert_int_equal(second, cases[i].second);
        assert_int_equal(last, cases[i].last);
    }
}

/* A random delay spreads the reconnects of many clients after a server restart. */
static void conn_lost_reconnects_after_random_delay(void **state)
{
    static const struct {
        uint32_t chance, delay;
    } cases[] = {{0, 0}, {1, 1}, {50, 50}, {51, 0}, {UINT32_MAX, 0}};
    (void)state;
    link_.stays_up = true;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        bring_up();
        unsigned before = n_connects;
        chance = cases[i].chance;
        package_conn_fail(&link_, -ECONNRESET, "closed");
        assert_int_equal(link_.retry_ms, now_ms + cases[i].delay);
        pass(cases[i].delay + 1);
        assert_int_equal(n_connects, before + 1);
        assert_in_range(connected_ms[before], link_.retry_ms, link_.retry_ms + 1);
    }
}

static void conn_retry_waits_for_back_off(void **state)
{
    (void)state;
    is_refused = true;
    package_conn_open(&link_);
    package_conn_open(&link_);
    now_ms += 49;
    package_conn_open(&link_);
    assert_int_equal(n_connects, 1);
    now_ms++;
    package_conn_open(&link_);
    assert_int_equal(n_connects, 2);
}

static void conn_lost_may_be_opened_at_once(void **state)
{
    (void)state;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "closed");
    assert_int_equal(n_closes, 1);
    package_conn_open(&link_);
    assert_int_equal(n_connects, 2);
    package_conn_fail(&link_, -ECONNRESET, "closed");
    package_conn_open(&link_);
    assert_int_equal(n_connects, 2);
}

static void conn_stay_up_reconnects_automatically(void **state)
{
    (void)state;
    link_.stays_up = true;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "closed");
    is_refused = true;
    pass(149); /* reconnects at once, then after 50 and 100 ms */
    assert_int_equal(n_connects, 3);
    pass(1);
    assert_int_equal(n_connects, 4);
    is_refused = false;
    pass(200);
    assert_int_equal(n_connects, 5);
    package_conn_mark_ready(&link_);
    link_.stays_up = false;
    package_conn_fail(&link_, -ECONNRESET, "closed");
    pass(10000);
    assert_int_equal(n_connects, 5);
}

static void conn_stay_up_opens_at_iteration_end(void **state)
{
    (void)state;
    package_conn_stay_up(&link_);
    assert_int_equal(n_connects, 0);
    end_iteration();
    assert_int_equal(n_connects, 1);
    package_conn_stay_up(&link_);
    assert_false(iteration_end_is_set);
    package_conn_mark_ready(&link_);
    end_iteration();
    assert_int_equal(n_connects, 1);
    assert_int_equal(n_sends, 0);
}

static void conn_stay_up_cancelled_stays_closed(void **state)
{
    (void)state;
    package_conn_stay_up(&link_);
    link_.stays_up = false;
    end_iteration();
    assert_int_equal(n_connects, 0);
}

static void conn_back_off_restarts_after_success(void **state)
{
    (void)state;
    is_refused = true;
    for (int i = 0; i < 4; i++) {
        package_conn_open(&link_);
        now_ms += 1000;
    }
    is_refused = false;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "closed");
    is_refused = true;
    package_conn_open(&link_);
    assert_int_equal(link_.retry_ms - now_ms, 50);
}

static void conn_exclusive_counts_as_connected(void **state)
{
    (void)state;
    bring_up();
    package_conn_set_state(&link_, PACKAGE_CONN_EXCLUSIVE);
    package_conn_fail(&link_, -ECONNRESET, "closed");
    assert_int_equal(link_.retry_ms, now_ms);
    assert_int_equal(n_logged, 0);
}

static void conn_unused_is_not_reopened(void **state)
{
    (void)state;
    is_refused = true;
    package_conn_open(&link_);
    pass(100ul * TIMEOUT);
    assert_int_equal(n_connects, 1);
}

/* ---- Log ---- */

static void conn_outage_is_logged_once(void **state)
{
    (void)state;
    link_.server = MK_STR("unix:/run/redis");
    is_refused = true;
    for (int i = 0; i < 10; i++) {
        package_conn_open(&link_);
        now_ms += 1000;
    }
    assert_int_equal(n_downs, 10);
    assert_int_equal(n_logged, 1);
    assert_int_equal(level_logged, MK_LOG_ERROR);
    assert_string_equal(logged, "[REDIS] main, unix:/run/redis: Connection refused");
    is_refused = false;
    bring_up();
    assert_int_equal(n_logged, 2);
    assert_int_equal(level_logged, MK_LOG_INFO);
    assert_string_equal(logged, "[REDIS] main, unix:/run/redis is back");
}

static void conn_immediate_reconnect_is_not_logged(void **state)
{
    (void)state;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "the server has closed the connection");
    bring_up();
    assert_int_equal(n_logged, 0);
    assert_string_equal(link_.error_text, "[REDIS] main: the server has closed the connection");
    assert_string_equal(package_conn_error_reason(&link_), "the server has closed the connection");
}

static void conn_down_cannot_fail_again(void **state)
{
    (void)state;
    bring_up();
    package_conn_fail(&link_, -ECONNRESET, "closed");
    package_conn_fail(&link_, -ECANCELED, "cancelled");
    assert_int_equal(n_downs, 1);
    assert_int_equal(n_closes, 1);
    assert_int_equal(n_logged, 0);
    assert_int_equal(link_.retry_ms, now_ms);
    assert_string_equal(package_conn_error_reason(&link_), "closed");
}

static void conn_second_outage_is_logged_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        package_conn_open(&link_);
        package_conn_fail(&link_, -EPROTO, "odd");
        now_ms += 1000;
        bring_up();
        package_conn_fail(&link_, -ECONNRESET, "closed");
    }
    assert_int_equal(n_logged, 4);
}

static void conn_error_text_is_one_bounded_line(void **state)
{
    char server[4000], reason[4000];
    (void)state;
    memset(server, 's', sizeof server);
    memset(reason, 'r', sizeof reason);
    package_conn_set_error(&link_, MK_STR(" FATAL:\n no such database\n"));
    assert_string_equal(link_.error_text, "[REDIS] main: FATAL:  no such database");
    link_.server = mk_str_of(server, sizeof server);
    package_conn_set_error(&link_, mk_str_of(reason, sizeof reason));
    assert_int_equal(strlen(link_.error_text), PACKAGE_CONN_ERROR_MAX - 1);
    assert_int_equal(strspn(package_conn_error_reason(&link_), "r"),
                     strlen(package_conn_error_reason(&link_)));
    assert_true(strlen(package_conn_error_reason(&link_)) > 300);
}

static void conn_error_text_can_be_copied(void **state)
{
    struct package_conn other = {.ops = &ops, .name = MK_STR("the other"), .server = MK_STR("far")};
    (void)state;
    package_conn_set_error(&link_, MK_STR("before"));
    package_conn_set_error(&other, MK_STR("it is full"));
    package_conn_copy_error(&link_, &other);
    assert_string_equal(link_.error_text, "[REDIS] the other, far: it is full");
    assert_string_equal(package_conn_error_reason(&link_), "it is full");
}

/* ---- Errors ---- */

static void conn_error_code_is_mapped_for_handlers(void **state)
{
    static const int cases[][2] = {{-ENOENT, -ECONNREFUSED},
                                   {-EACCES, -ENOKEY},
                                   {-EPERM, -ENOKEY},
                                   {-ECONNREFUSED, -ECONNREFUSED},
                                   {-EHOSTUNREACH, -EHOSTUNREACH},
                                   {-ETIMEDOUT, -ETIMEDOUT}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        now_ms += 10000;
        package_conn_open(&link_);
        package_conn_fail_errno(&link_, cases[i][0]);
        assert_int_equal(down_with, cases[i][1]);
        assert_int_equal(package_conn_map_errno(cases[i][0]), cases[i][1]);
        assert_string_equal(package_conn_error_reason(&link_), package_conn_strerror(cases[i][0]));
    }
}

static void conn_strerror_explains_failed_resolution(void **state)
{
    (void)state;
    assert_string_equal(package_conn_strerror(-ENOENT), strerror(ENOENT));
    assert_string_equal(package_conn_strerror(-EHOSTUNREACH), "its name cannot be resolved, or it is down");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(conn_state_machine_allows_only_listed_transitions, setup, teardown),
        fixture_test(conn_state_distinguishes_attempt_from_connection, setup, teardown),
        fixture_test(conn_open_starts_one_attempt_at_a_time, setup, teardown),
        fixture_test(conn_attempt_times_out, setup, teardown),
        fixture_test(conn_handshake_shares_timeout_of_attempt, setup, teardown),
        fixture_test(conn_migration_has_no_timeout, setup, teardown),
        fixture_test(conn_ready_may_stay_idle, setup, teardown),
        fixture_test(conn_attempts_back_off_up_to_a_second, setup, teardown),
        fixture_test(conn_back_off_has_jitter_of_at_most_half, setup, teardown),
        fixture_test(conn_lost_reconnects_after_random_delay, setup, teardown),
        fixture_test(conn_retry_waits_for_back_off, setup, teardown),
        fixture_test(conn_lost_may_be_opened_at_once, setup, teardown),
        fixture_test(conn_back_off_restarts_after_success, setup, teardown),
        fixture_test(conn_stay_up_reconnects_automatically, setup, teardown),
        fixture_test(conn_stay_up_opens_at_iteration_end, setup, teardown),
        fixture_test(conn_stay_up_cancelled_stays_closed, setup, teardown),
        fixture_test(conn_exclusive_counts_as_connected, setup, teardown),
        fixture_test(conn_unused_is_not_reopened, setup, teardown),
        fixture_test(conn_outage_is_logged_once, setup, teardown),
        fixture_test(conn_immediate_reconnect_is_not_logged, setup, teardown),
        fixture_test(conn_down_cannot_fail_again, setup, teardown),
        fixture_test(conn_second_outage_is_logged_again, setup, teardown),
        fixture_test(conn_error_text_is_one_bounded_line, setup, teardown),
        fixture_test(conn_error_text_can_be_copied, setup, teardown),
        fixture_test(conn_error_code_is_mapped_for_handlers, setup, teardown),
        fixture_test(conn_strerror_explains_failed_resolution, setup, teardown),
    };
    return cmocka_run_group_tests_name("package_conn", tests, NULL, NULL);
}
