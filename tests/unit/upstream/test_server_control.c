/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that are added while the workers run. */
#include "upstream/server_control.h"

#include <unistd.h>

#include "unit/folder.h"
#include "unit/upstream/fixture.h"
#include "upstream/added_server.h"

static struct mk_upstream_server *added = &servers[1];
static char answer[256];
static uint16_t port;

/* The second server is room for one. */
static void setup(void)
{
    upstream_setup(2);
    port = added->port;
    upstreams.control = mk_server_control_init(NULL);
    upstreams.limit.lock_fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(upstreams.control && upstreams.limit.lock_fd >= 0);
    *added = (struct mk_upstream_server){.upstream = &upstream,
                                         .index = 1,
                                         .weight = 1,
                                         .is_spare = true,
                                         .stats_slot = 1,
                                         .mode = MK_SERVER_VACANT};
    mk_upstream_stats_set_mode(&upstreams.stats, 1, MK_SERVER_VACANT, 0);
    start_pool();
}

static void teardown(void)
{
    mk_fd_close(&upstreams.limit.lock_fd);
}

struct result {
    int n, error;
    char text[256];
};

static void on_command_end(void *ctx, int error, mk_str text)
{
    struct result *r = ctx;
    r->n++;
    r->error = error;
    (void)snprintf(r->text, sizeof r->text, "%.*s", MK_STR_ARG(text));
}

static struct result result;

static int run(mk_str action, mk_str server)
{
    const struct mk_command_end end = {on_command_end, &result};
    char words[64];
    struct mk_buf line = mk_buf_fixed(words, sizeof words), out = mk_buf_fixed(answer, sizeof answer - 1);
    mk_buf_addf(&line, "u %.*s %.*s", MK_STR_ARG(action), MK_STR_ARG(server));
    int e = mk_server_control_run(pool, mk_buf_str(&line), &out, &end);
    answer[out.len] = '\0';
    return e;
}

static int add_server(void)
{
    char name[32];
    (void)snprintf(name, sizeof name, "127.0.0.1:%u", port);
    return run(MK_STR("add"), mk_str_from_c(name));
}

static void wait_for_sweep(void)
{
    for (int i = 0; !added->name.p && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
}

/* The message to the workers is lost, because the queue of the master is full or the sender dies: each worker finds
 * the server by itself, even one that is idle. */
static void server_control_worker_finds_added_server_without_message(void **state)
{
    struct notification notified;
    (void)state;
    worker.send_error = -EAGAIN;
    assert_int_equal(add_server(), 0);
    assert_string_equal(answer, "done, until you reload or restart the server");
    assert_int_equal(worker.n_messages, 1);
    assert_null(added->name.p);
    wait_for_sweep();
    assert_non_null(added->name.p);
    assert_int_equal(added->port, port);
    (void)mk_health_record_failure(&servers[0]);
    settings.max_fails = 1;
    (void)mk_health_record_failure(&servers[0]);
    struct mk_upstream_conn *l = acquire(&notified);
    assert_int_equal(mk_upstream_conn_server(l), 1);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(add_server(), -EEXIST);
}

static void server_control_lost_message_of_drain_takes_effect(void **state)
{
    struct notification notified;
    (void)state;
    worker.send_error = -EAGAIN;
    assert_int_equal(run(MK_STR("drain"), servers[0].name), 0);
    struct mk_upstream_conn *l = acquire(&notified);
    assert_true(mk_upstream_conn_state(l) < 0);
    mk_upstream_conn_release(l, MK_UPSTREAM_CONN_CLOSE);
}

/* Publishes another configuration. */
static struct mk_upstream_stats publish(const struct mk_upstream_stats *stats,
                                        struct mk_upstream_stats_snapshot *former, enum mk_server_mode mode)
{
    struct mk_upstream_stats next = *stats;
    *former = (struct mk_upstream_stats_snapshot){0};
    mk_upstream_stats_save(&next, former, false);
    mk_upstream_stats_set_mode(&next, added->stats_slot, mode, 0);
    return next;
}

/* An open request keeps the worker alive through two reloads. The second one removes the server. */
static void server_control_draining_worker_closes_server_that_reload_removed(void **state)
{
    struct mk_upstream_stats_snapshot second, third;
    (void)state;
    assert_int_equal(add_server(), 0);
    wait_for_sweep();
    struct mk_upstream_stats next = publish(&upstreams.stats, &second, MK_SERVER_ENABLED);
    worker.is_draining = true;
    mk_pool_drain(pool);
    assert_ptr_equal(pool->backends[1].mode, &next.admin[1].mode);
    struct mk_upstream_stats last = publish(&next, &third, MK_SERVER_REMOVED);
    mk_upstream_stats_drain(&next, &second);
    for (int i = 0; added->name.p && i < 300; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_null(added->name.p);
    assert_int_equal(upstreams.control->of[1].is_held[pool->row], 0);
    assert_ptr_equal(pool->stats.admin, last.admin);
}

static struct folder top;
static char state_file[128];

static void setup_saving(void)
{
    setup();
    folder_setup(&top);
    (void)snprintf(state_file, sizeof state_file, "%s/state", top.path);
    upstream.state_file = mk_str_from_c(state_file);
    result = (struct result){.n = 0};
    worker.has_threads = true;
}

static int drain_and_save(void)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s --save", MK_STR_ARG(servers[0].name));
    return run(MK_STR("drain"), mk_str_from_c(name));
}

static void server_control_saves_in_a_thread(void **state)
{
    (void)state;
    assert_int_equal(drain_and_save(), -EINPROGRESS);
    assert_string_equal(answer, "");
    assert_int_equal(access(state_file, F_OK), -1);
    assert_int_equal(run(MK_STR("enable"), servers[0].name), -EAGAIN); /* the disk is slow */
    assert_string_equal(answer, "another change is in progress: try again");
    assert_int_equal(mk_health_mode(&servers[0]), MK_SERVER_DRAINS);
    end_work(&worker);
    assert_int_equal(result.n, 1);
    assert_int_equal(result.error, 0);
    assert_string_equal(result.text, "done, and saved");
    assert_int_equal(access(state_file, F_OK), 0);
    assert_int_equal(run(MK_STR("enable"), servers[0].name), 0);
}

static void server_control_saves_without_threads(void **state)
{
    (void)state;
    worker.has_threads = false;
    assert_int_equal(drain_and_save(), 0);
    assert_string_equal(answer, "done, and saved");
    assert_int_equal(access(state_file, F_OK), 0);
    assert_int_equal(result.n, 0);
}

static void server_control_failed_save_is_reported(void **state)
{
    (void)state;
    (void)snprintf(state_file, sizeof state_file, "%s/none/state", top.path);
    upstream.state_file = mk_str_from_c(state_file);
    assert_int_equal(drain_and_save(), -EINPROGRESS);
    end_work(&worker);
    assert_int_equal(result.error, -EIO);
    assert_non_null(strstr(result.text, "done, but not saved: cannot write "));
    assert_non_null(strstr(result.text, "No such file"));
    assert_int_equal(run(MK_STR("enable"), servers[0].name), 0);
    worker.has_threads = false;
    assert_int_equal(drain_and_save(), -EIO);
    assert_non_null(strstr(answer, "done, but not saved: cannot write "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(server_control_worker_finds_added_server_without_message, setup, teardown),
        fixture_test(server_control_lost_message_of_drain_takes_effect, setup, teardown),
        fixture_test(server_control_draining_worker_closes_server_that_reload_removed, setup, teardown),
        fixture_test(server_control_saves_in_a_thread, setup_saving, teardown),
        fixture_test(server_control_saves_without_threads, setup_saving, teardown),
        fixture_test(server_control_failed_save_is_reported, setup_saving, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
