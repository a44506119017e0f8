/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics outlive their processes; the scoreboard records the results of reloads. */
#include "worker/scoreboard.h"

#include "connection/conn.h"
#include "unit/test.h"

static struct mk_scoreboard scoreboard;

static void setup(void)
{
    scoreboard = (struct mk_scoreboard){.master_pid = 1};
    assert_int_equal(mk_scoreboard_init(&scoreboard, 3), 0);
}

static void teardown(void)
{
    mk_scoreboard_fini(&scoreboard);
}

static void scoreboard_new_is_empty(void **state)
{
    (void)state;
    assert_int_equal(scoreboard.n, 3);
    assert_int_equal(scoreboard.at[2].started, 0);
    assert_int_equal(scoreboard.reload_stats->past.requests, 0);
    assert_int_equal(atomic_load(&scoreboard.reload_stats->reloads), 0);
}

static void scoreboard_new_worker_starts_at_zero_and_history_is_kept(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        mk_scoreboard_reassign_slot(&scoreboard, &scoreboard.at[1], i);
        assert_int_equal(scoreboard.at[1].started, i);
        assert_int_equal(scoreboard.at[1].counters.requests, 0);
        scoreboard.at[1].counters = (struct mk_counters){.accepted = 1,
                                                         .dropped = 2,
                                                         .open = 3,
                                                         .requests = 4,
                                                         .by_class = {[2] = 5},
                                                         .by_outcome = {[MK_OUTCOME_CLIENT_ABORTED] = 6},
                                                         .sent = 7};
        scoreboard.at[1].draining = true;
    }
    const struct mk_counters *past = &scoreboard.reload_stats->past;
    assert_int_equal(past->accepted, 2);
    assert_int_equal(past->dropped, 4);
    assert_int_equal(past->open, 0); /* no connection is left open */
    assert_int_equal(past->requests, 8);
    assert_int_equal(past->by_class[2], 10);
    assert_int_equal(past->by_outcome[MK_OUTCOME_CLIENT_ABORTED], 12);
    assert_int_equal(past->sent, 14);
}

static void scoreboard_reload_is_in_progress_until_counted(void **state)
{
    (void)state;
    struct mk_reload_stats *h = scoreboard.reload_stats;
    mk_scoreboard_reload_begin(h);
    assert_true(atomic_load(&h->reloading));
    mk_scoreboard_reload_succeeded(h);
    assert_false(atomic_load(&h->reloading));
    assert_int_equal(atomic_load(&h->reloads), 1);
    mk_scoreboard_reload_begin(h);
    mk_scoreboard_reload_failed(h, MK_STR("the reason"));
    assert_false(atomic_load(&h->reloading));
    assert_int_equal(atomic_load(&h->failed_reloads), 1);
    assert_string_equal(h->why, "the reason");
}

static void scoreboard_reload_reason_is_truncated_and_replaced(void **state)
{
    (void)state;
    static char reason[2 * MK_RELOAD_STATS_REASON_MAX];
    memset(reason, 'x', sizeof reason);
    mk_scoreboard_reload_failed(scoreboard.reload_stats, mk_str_of(reason, sizeof reason));
    assert_int_equal(strlen(scoreboard.reload_stats->why), MK_RELOAD_STATS_REASON_MAX - 1);
    mk_scoreboard_reload_failed(scoreboard.reload_stats, MK_STR_NULL);
    assert_string_equal(scoreboard.reload_stats->why, "");
}

static void expect_description(uint64_t moves, const char *line, const char *expected)
{
    char buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    struct mk_scoreboard_slot slot = {.counters.moves = moves};
    memcpy(slot.counters.line, line, strnlen(line, sizeof slot.counters.line));
    mk_scoreboard_describe_slot(&slot, &text);
    assert_str(mk_buf_str(&text), expected);
}

static void scoreboard_describes_current_work(void **state)
{
    (void)state;
    char buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    mk_scoreboard_reassign_slot(&scoreboard, &scoreboard.at[1], 1);
    mk_scoreboard_describe_slot(&scoreboard.at[1], &text);
    assert_str(mk_buf_str(&text), "before its first request");
    expect_description(0, "in worker_start() of x", "in worker_start() of x");
    expect_description(MK_CONN_DISPATCH, "GET /", "last request \"GET /\", connection states dispatch");
    expect_description(MK_CONN_HEAD << 4 | MK_CONN_DISPATCH, "GET /",
                       "last request \"GET /\", connection states head dispatch");
    char full[MK_COUNTERS_LINE_MAX]; /* a torn line may lack its NUL */
    memset(full, 'x', sizeof full);
    char expected[sizeof full + 1] = {0};
    memcpy(expected, full, sizeof full);
    expect_description(0, full, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(scoreboard_new_is_empty, setup, teardown),
        fixture_test(scoreboard_new_worker_starts_at_zero_and_history_is_kept, setup, teardown),
        fixture_test(scoreboard_reload_is_in_progress_until_counted, setup, teardown),
        fixture_test(scoreboard_describes_current_work, setup, teardown),
        fixture_test(scoreboard_reload_reason_is_truncated_and_replaced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
