/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/board.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/upstream/world.h"

static struct mk_board board;

static int start(void **state)
{
    (void)state;
    board = new_board();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    free_board(&board);
    return 0;
}

/* Of a configuration that has this server alone. */
static unsigned place_of(const char *upstream, const char *server)
{
    struct mk_board_plan plan = {0};
    unsigned place;
    assert_true(mk_board_find(&board, &plan, mk_str_from_c(upstream), mk_str_from_c(server), &place));
    mk_board_name(&board, place, mk_str_from_c(upstream), mk_str_from_c(server));
    return place;
}

static void a_server_keeps_its_place(void **state)
{
    (void)state;
    unsigned a = place_of("api", "127.0.0.1:1"), b = place_of("api", "127.0.0.1:2");
    assert_int_not_equal(a, b);
    mk_board_info(&board, a)->exchanges = 7;
    assert_int_equal(place_of("api", "127.0.0.1:1"), a);
    assert_int_equal(mk_board_info(&board, a)->exchanges, 7);
    /* Where the name of one ends and the other begins matters. */
    assert_int_not_equal(place_of("ap", "i127.0.0.1:1"), a);
}

static void a_hidden_server_is_shown_again(void **state)
{
    struct mk_upstream_info info;
    (void)state;
    unsigned a = place_of("api", "a:1");
    mk_board_hide(&board, a);
    assert_true(mk_upstream_info_at(board.shown, a, &info));
    assert_string_equal(info.server, "");
    assert_int_equal(place_of("api", "a:1"), a);
    assert_true(mk_upstream_info_at(board.shown, a, &info));
    assert_string_equal(info.server, "a:1");
    assert_false(mk_upstream_info_at(board.shown, a + 1, &info));
}

static void a_full_board_takes_hidden_places(void **state)
{
    char name[32];
    unsigned place;
    (void)state;
    for (unsigned i = 0; i < MK_UPSTREAM_SERVERS; i++) {
        (void)snprintf(name, sizeof name, "server:%u", i);
        assert_int_equal(place_of("u", name), i);
    }
    struct mk_board_plan plan = {0};
    assert_false(mk_board_find(&board, &plan, MK_STR("u"), MK_STR("one more:1"), &place));
    mk_board_info(&board, 100)->failures = 9;
    mk_board_hide(&board, 100);
    assert_int_equal(place_of("u", "one more:1"), 100);
    assert_int_equal(mk_board_info(&board, 100)->failures, 0);
}

static void what_is_only_looked_for_is_not_shown(void **state)
{
    struct mk_board_plan plan = {0}, other = {0};
    unsigned old = place_of("u", "old:1"), a, b, again;
    (void)state;
    assert_true(mk_board_find(&board, &plan, MK_STR("u"), MK_STR("new:1"), &a));
    assert_true(mk_board_find(&board, &plan, MK_STR("u"), MK_STR("new:2"), &b));
    assert_true(mk_board_find(&board, &plan, MK_STR("u"), MK_STR("new:1"), &again));
    assert_true(a != b && a != old && b != old && a == again);
    assert_int_equal(board.shown->n, 1);
    mk_board_name(&board, b, MK_STR("u"), MK_STR("new:2"));
    assert_string_equal(mk_board_info(&board, a)->server, "");
    assert_true(mk_board_find(&board, &other, MK_STR("u"), MK_STR("new:2"), &again));
    assert_int_equal(again, b);
}

static void one_that_never_serves_leaves_what_was_shown(void **state)
{
    struct mk_board_former first = {0}, second = {0};
    (void)state;
    mk_board_keep(&board, &first);
    unsigned old = place_of("u", "old:1");
    mk_board_info(&board, old)->weight = 7;
    mk_board_keep(&board, &second);
    unsigned new = place_of("u", "new:1");
    mk_board_hide(&board, old);
    mk_board_restore(&board, &first); /* it served, and goes when another one does */
    assert_string_equal(mk_board_info(&board, old)->server, "");
    mk_board_info(&board, old)->weight = 9;
    mk_board_restore(&board, &second);
    assert_string_equal(mk_board_info(&board, old)->server, "old:1");
    assert_int_equal(mk_board_info(&board, old)->weight, 7);
    assert_string_equal(mk_board_info(&board, new)->server, "");
}

static void long_names_are_cut(void **state)
{
    char name[200];
    struct mk_upstream_info info;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    unsigned place = place_of(name, name);
    assert_true(mk_upstream_info_at(board.shown, place, &info));
    assert_int_equal(strlen(info.server), MK_UPSTREAM_NAME - 1);
    const struct mk_upstream_info *shown = mk_board_info(&board, place); /* as it is, with its NULs */
    assert_int_equal(shown->server[MK_UPSTREAM_NAME - 1], '\0');
    assert_int_equal(shown->upstream[MK_UPSTREAM_NAME - 1], '\0');
    assert_int_equal(shown->state, 0);
}

static void the_budget_is_a_number_of_connections(void **state)
{
    unsigned slots[3], more, place = place_of("php", "unix:/x"), row;
    (void)state;
    assert_true(mk_board_enter(&board, 0, &row));
    for (unsigned i = 0; i < 3; i++)
        assert_true(mk_board_claim(&board, place, 3, row, &slots[i]));
    assert_false(mk_board_claim(&board, place, 3, row, &more));
    mk_board_release(&board, place, slots[1]);
    assert_true(mk_board_claim(&board, place, 3, row, &more));
    assert_int_equal(more, slots[1]);
}

static void what_a_dead_worker_held_is_given_back(void **state)
{
    unsigned place = place_of("php", "unix:/x"), slot, row;
    struct mk_upstream_info info;
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ok = mk_board_enter(&board, 0, &row) && mk_board_claim(&board, place, 1, row, &slot);
        mk_board_gauge(&board, place, row)->open = 1;
        mk_board_ledger(&board, place)->oldest[row][0].since_ms = 5;
        _exit(!ok);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(mk_upstream_info_at(board.shown, place, &info));
    assert_int_equal(info.open, 1);
    board.ledgers->pids[5] = (uint32_t)getpid(); /* of another worker that lives */
    board.shown->n_workers = 6;
    assert_true(mk_board_enter(&board, 1, &row) || true);
    mk_board_reap(&board);
    assert_true(mk_upstream_info_at(board.shown, place, &info));
    assert_int_equal(info.open, 0);
    assert_int_equal(mk_board_ledger(&board, place)->oldest[0][0].since_ms, 0);
    assert_true(mk_board_claim(&board, place, 1, row, &slot));
    assert_int_equal(board.ledgers->pids[5], getpid());
}

static void the_first_row_is_reaped_too(void **state)
{
    unsigned mine, slot, place;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    place = place_of("u", "s"); /* the worker in the first row has died, and this one is in the second */
    assert_int_equal(waitpid(child, NULL, 0), child);
    board.ledgers->pids[0] = (uint32_t)getpid();
    assert_true(mk_board_enter(&board, 1, &mine));
    assert_int_equal(mine, 1);
    assert_true(mk_board_claim(&board, place, 1, 0, &slot));
    board.ledgers->pids[0] = (uint32_t)child;
    assert_false(mk_board_claim(&board, place, 1, mine, &slot));
    mk_board_reap(&board);
    assert_true(mk_board_claim(&board, place, 1, mine, &slot));
}

static void rows_belong_to_those_that_live(void **state)
{
    unsigned row, other;
    (void)state;
    assert_true(mk_board_enter(&board, 0, &row));
    assert_true(mk_board_enter(&board, 0, &other));
    assert_int_not_equal(row, other);
    mk_board_leave(&board, row);
    assert_true(mk_board_enter(&board, 0, &other));
    assert_int_equal(row, other);
    for (unsigned i = 0; i < MK_UPSTREAM_WORKERS; i++)
        board.ledgers->pids[i] = (uint32_t)getpid();
    assert_false(mk_board_enter(&board, 0, &row));
}

/* The server has up to 1024 workers, those that end included: 512, and as many at a reload. */
static void every_worker_has_a_row(void **state)
{
    unsigned row;
    (void)state;
    for (unsigned i = 0; i < 1023; i++)
        board.ledgers->pids[i] = (uint32_t)getpid();
    assert_true(mk_board_enter(&board, 0, &row));
    assert_int_equal(row, 1023);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_keeps_its_place, start, stop),
        cmocka_unit_test_setup_teardown(a_hidden_server_is_shown_again, start, stop),
        cmocka_unit_test_setup_teardown(a_full_board_takes_hidden_places, start, stop),
        cmocka_unit_test_setup_teardown(what_is_only_looked_for_is_not_shown, start, stop),
        cmocka_unit_test_setup_teardown(one_that_never_serves_leaves_what_was_shown, start, stop),
        cmocka_unit_test_setup_teardown(long_names_are_cut, start, stop),
        cmocka_unit_test_setup_teardown(the_budget_is_a_number_of_connections, start, stop),
        cmocka_unit_test_setup_teardown(what_a_dead_worker_held_is_given_back, start, stop),
        cmocka_unit_test_setup_teardown(rows_belong_to_those_that_live, start, stop),
        cmocka_unit_test_setup_teardown(the_first_row_is_reaped_too, start, stop),
        cmocka_unit_test_setup_teardown(every_worker_has_a_row, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
