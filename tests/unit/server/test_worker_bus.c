/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that has no master talks to itself; one that has, says things in a form that the master knows. */
#include "server/worker.h"
#include "server/worker_bus.h"

#include <stdio.h>

#include "os/fd.h"
#include "server/control.h"
#include "setup/plugins.h"
#include "unit/test.h"

static struct mk_worker w;
static struct mk_generation g;
static struct mk_log log_of_test;
static char heard[256];
static int answers;

static const struct mk_plugin plugin, deaf;

static void on_message(struct mk_worker *worker, mk_str message, void *data)
{
    assert_ptr_equal(data, &g);
    size_t len = strlen(heard);
    snprintf(heard + len, sizeof heard - len, "%.*s ", MK_STR_ARG(message));
    if (answers-- > 0)
        (void)!mk_worker_send(worker, &plugin, MK_TO_ALL, MK_STR("answer"));
}

static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "echo", .on_message = on_message};
static const struct mk_plugin deaf = {MK_PLUGIN_HEAD, .name = "deaf"};

static int start_with(int master_fd)
{
    static struct mk_loaded loaded[] = {{.object.plugin = &deaf, .data = &g},
                                        {.object.plugin = &plugin, .data = &g}};
    heard[0] = '\0';
    answers = 0;
    g = (struct mk_generation){.plugins_by_order = {&loaded[0], &loaded[1]}, .n_plugins = 2};
    log_of_test = (struct mk_log){.level = MK_LOG_INFO};
    w = (struct mk_worker){.generation = &g, .count = 2, .index = 1, .n_started = 2, .web.log = &log_of_test};
    mk_worker_bus_init(&w, master_fd);
    return mk_loop_init(&w.loop);
}

static int start(void **state)
{
    (void)state;
    return start_with(-1);
}

static int stop(void **state)
{
    (void)state;
    mk_worker_bus_fini(&w);
    mk_loop_fini(&w.loop);
    return 0;
}

static void turn(const char *expected)
{
    assert_int_equal(mk_loop_turn(&w.loop, 0), 0);
    assert_string_equal(heard, expected);
}

static void alone_it_hears_itself_later(void **state)
{
    (void)state;
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, MK_STR("all")), -ENOTCONN);
    assert_int_equal(mk_worker_send(&w, &plugin, 1, MK_STR("me")), -ENOTCONN);
    assert_int_equal(mk_worker_send(&w, &plugin, 0, MK_STR("other")), -ENOTCONN);
    assert_int_equal(mk_worker_send(&w, &deaf, MK_TO_ALL, MK_STR("x")), -ENOTCONN);
    assert_string_equal(heard, "");
    turn("all me ");
    turn("all me ");
}

static void an_answer_waits_for_the_next_turn(void **state)
{
    (void)state;
    answers = 2;
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, MK_STR("ask")), -ENOTCONN);
    turn("ask ");
    turn("ask answer ");
    turn("ask answer answer ");
    turn("ask answer answer ");
}

static void a_worker_that_ends_hears_nothing_more(void **state)
{
    (void)state;
    answers = 1 << 20; /* else it would never come to its end */
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, MK_STR("ask")), -ENOTCONN);
    turn("ask ");
    w.ending = true;
    mk_loop_run_tasks(&w.loop);
    assert_string_equal(heard, "ask ");
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, MK_STR("ask")), -ENOTCONN);
    mk_loop_run_tasks(&w.loop);
    assert_string_equal(heard, "ask ");
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static char much[32 * 1024 + 1];
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, mk_str_of(much, sizeof much)), -EMSGSIZE);
    assert_int_equal(mk_worker_send(&w, &plugin, 2, MK_STR("x")), -EINVAL);
    assert_int_equal(mk_worker_send(&w, &plugin, -2, MK_STR("x")), -EINVAL);
    assert_int_equal(mk_worker_ask_log_level(&w, MK_LOG_LEVELS), -EINVAL);
    turn("");
}

static void alone_it_sets_its_own_level_and_reloads_nothing(void **state)
{
    (void)state;
    assert_int_equal(mk_worker_ask_reload(&w), -ENOTCONN);
    assert_int_equal(mk_worker_ask_log_level(&w, MK_LOG_DEBUG), 0);
    assert_int_equal(mk_worker_log_level(&w), MK_LOG_DEBUG);
}

static void before_it_has_started_a_plugin_hears_nothing(void **state)
{
    (void)state;
    w.n_started = 1;
    mk_worker_deliver(&w, MK_STR("echo"), MK_STR("x"));
    assert_string_equal(heard, "");
    w.n_started = 2;
    mk_worker_deliver(&w, MK_STR("echo"), MK_STR("x"));
    mk_worker_deliver(&w, MK_STR("nobody"), MK_STR("x"));
    assert_string_equal(heard, "x ");
}

static void a_master_gets_a_report(void **state)
{
    (void)state;
    int master, worker;
    struct mk_control_room room;
    struct mk_control_message m;
    assert_int_equal(mk_control_open(&master, &worker), 0);
    assert_int_equal(start_with(worker), 0);
    assert_int_equal(mk_worker_send(&w, &plugin, 1, MK_STR("me")), 0);
    assert_int_equal(mk_worker_ask_reload(&w), 0);
    assert_int_equal(mk_worker_ask_log_level(&w, MK_LOG_ERROR), 0);
    assert_int_equal(mk_worker_log_level(&w), MK_LOG_INFO); /* until the master says so */
    turn("");
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_MESSAGE);
    assert_int_equal(m.number, 1);
    assert_str(m.name, "echo");
    assert_str(m.text, "me");
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_RELOAD);
    assert_int_equal(mk_control_receive(master, &room, &m), 0);
    assert_int_equal(m.kind, MK_CONTROL_LOG_LEVEL);
    mk_fd_close(&master); /* a master that is gone is none */
    assert_int_equal(mk_worker_send(&w, &plugin, MK_TO_ALL, MK_STR("alone")), -ENOTCONN);
    turn("alone ");
    mk_fd_close(&worker);
    stop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alone_it_hears_itself_later, start, stop),
        cmocka_unit_test_setup_teardown(an_answer_waits_for_the_next_turn, start, stop),
        cmocka_unit_test_setup_teardown(a_worker_that_ends_hears_nothing_more, start, stop),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(alone_it_sets_its_own_level_and_reloads_nothing, start, stop),
        cmocka_unit_test_setup_teardown(before_it_has_started_a_plugin_hears_nothing, start, stop),
        cmocka_unit_test(a_master_gets_a_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
