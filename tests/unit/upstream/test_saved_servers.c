/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/saved_servers.h"

#include <sys/wait.h>
#include <unistd.h>

#include "unit/upstream/fixture.h"

static struct mk_server_state loaded;

static void load(mk_str server, enum mk_server_mode mode)
{
    assert_true(mk_saved_servers_init(NULL, &upstream));
    loaded = (struct mk_server_state){.n = 1, .entries = {{.server = server, .mode = mode, .weight = 3}}};
    upstream.loaded = &loaded;
}

static void setup(void)
{
    upstream_setup(1);
    upstreams.limit.lock_fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(upstreams.limit.lock_fd >= 0);
    upstream.state_file = MK_STR("/state");
    start_pool();
    load(MK_STR("a:1"), MK_SERVER_DRAINS);
}

static void teardown(void)
{
    mk_fd_close(&upstreams.limit.lock_fd);
}

static bool is_saved(mk_str server, enum mk_server_mode mode)
{
    struct mk_server_state_entry e;
    return mk_saved_servers_find(&upstream, server, &e) && e.mode == mode && e.weight == 3;
}

static void saved_servers_come_from_the_file(void **state)
{
    (void)state;
    mk_saved_servers_publish(&upstreams);
    assert_true(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
    assert_false(is_saved(MK_STR("b:1"), MK_SERVER_DRAINS));
    loaded.entries[0].server = MK_STR("b:1");
    mk_saved_servers_publish(&upstreams);
    assert_false(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
    assert_true(is_saved(MK_STR("b:1"), MK_SERVER_DRAINS));
}

/* A worker saves a change after the master has read the file: the master must not return to the file's entries. */
static void saved_servers_newer_than_the_file_stay(void **state)
{
    (void)state;
    mk_saved_servers_publish(&upstreams);
    mk_saved_servers_update(&upstream, 0);
    loaded.n = 0;
    mk_saved_servers_publish(&upstreams);
    assert_true(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
    upstream.n_changes_at_load = upstream.saved->n_changes;
    mk_saved_servers_file_written(&upstream);
    mk_saved_servers_publish(&upstreams);
    assert_true(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
    upstream.n_changes_at_load = upstream.saved->n_changes;
    mk_saved_servers_publish(&upstreams);
    assert_false(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
}

/* Another process holds the lock: it is about to write the file. */
static void saved_servers_stay_while_a_change_is_saved(void **state)
{
    (void)state;
    mk_saved_servers_publish(&upstreams);
    assert_true(mk_conn_limit_lock_changes(&upstreams.limit));
    pid_t child = fork();
    if (child == 0) { /* does not inherit the lock */
        loaded.n = 0;
        mk_saved_servers_publish(&upstreams);
        _exit(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    mk_conn_limit_unlock_changes(&upstreams.limit);
}

/* A worker that dies while it writes an entry leaves it unused. */
static void saved_servers_unfinished_entry_is_ignored(void **state)
{
    (void)state;
    mk_saved_servers_publish(&upstreams);
    (void)snprintf(upstream.saved->of[1].name, sizeof upstream.saved->of[1].name, "b:1");
    upstream.saved->of[1].weight = 3;
    assert_false(is_saved(MK_STR("b:1"), MK_SERVER_ENABLED));
    assert_ptr_equal(mk_saved_servers_next(upstream.saved, 0), &upstream.saved->of[0]);
    assert_null(mk_saved_servers_next(upstream.saved, upstream.saved->of[0].serial));
}

static void saved_servers_make_room_for_other_lines(void **state)
{
    (void)state;
    mk_saved_servers_publish(&upstreams);
    mk_saved_servers_update(&upstream, MK_SERVERS_MAX - 1);
    assert_true(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
    mk_saved_servers_update(&upstream, MK_SERVERS_MAX);
    assert_false(is_saved(MK_STR("a:1"), MK_SERVER_DRAINS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(saved_servers_come_from_the_file, setup, teardown),
        fixture_test(saved_servers_newer_than_the_file_stay, setup, teardown),
        fixture_test(saved_servers_stay_while_a_change_is_saved, setup, teardown),
        fixture_test(saved_servers_unfinished_entry_is_ignored, setup, teardown),
        fixture_test(saved_servers_make_room_for_other_lines, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
