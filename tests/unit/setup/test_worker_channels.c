/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/worker_channels.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd.h"
#include "setup/plugin_object.h"
#include "unit/test.h"

static struct mk_config_generation g;
static unsigned before;

static void on_message(struct mk_worker *w, mk_str message, void *data)
{
    (void)w, (void)message, (void)data;
}

static const struct mk_plugin deaf = {MK_PLUGIN_HEAD, .name = "deaf"};
static const struct mk_plugin hears = {MK_PLUGIN_HEAD, .name = "hears", .on_message = on_message};

/* Returns the number of open descriptors. The highest one does not tell, because lower ones may be free. */
static unsigned count_open(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void load(size_t n_plugins, unsigned workers)
{
    static struct mk_loaded_plugin loaded[] = {{.object.plugin = &deaf}, {.object.plugin = &hears}};
    before = count_open();
    g = (struct mk_config_generation){
        .plugins_by_order = {&loaded[0], &loaded[1]}, .n_plugins = n_plugins, .server.workers = workers};
    mk_arena_init(&g.arena, NULL);
}

static void close_all(void)
{
    mk_worker_channels_close(&g);
    mk_arena_fini(&g.arena);
    assert_int_equal(count_open(), before);
}

static void worker_channels_exist_if_a_plugin_needs_them(void **state)
{
    (void)state;
    load(1, 3);
    assert_int_equal(mk_worker_channels_open(&g), 0);
    assert_int_equal(g.n_worker_channels, 0);
    close_all();
    load(2, 3);
    assert_int_equal(mk_worker_channels_open(&g), 0);
    assert_int_equal(g.n_worker_channels, 3);
    assert_int_equal(count_open(), before + 6);
    close_all();
}

static void worker_channels_keep_message_boundaries(void **state)
{
    (void)state;
    char buffer[16];
    load(2, 2);
    assert_int_equal(mk_worker_channels_open(&g), 0);
    assert_int_equal(send(g.worker_channels[0].send_fd, "one", 3, 0), 3);
    assert_int_equal(send(g.worker_channels[0].send_fd, "two", 3, 0), 3);
    assert_int_equal(recv(g.worker_channels[0].receive_fd, buffer, sizeof buffer, 0), 3);
    assert_memory_equal(buffer, "one", 3);
    assert_int_equal(recv(g.worker_channels[0].receive_fd, buffer, sizeof buffer, 0), 3);
    /* the read never blocks */
    assert_int_equal(recv(g.worker_channels[0].receive_fd, buffer, sizeof buffer, 0), -1);
    assert_int_equal(recv(g.worker_channels[1].receive_fd, buffer, sizeof buffer, 0), -1);
    assert_true(fcntl(g.worker_channels[1].send_fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(g.worker_channels[1].receive_fd, F_GETFD) & FD_CLOEXEC);
    close_all();
}

static void worker_channels_keep_own_closes_other_receivers(void **state)
{
    (void)state;
    load(2, 3);
    assert_int_equal(mk_worker_channels_open(&g), 0);
    mk_worker_channels_keep_own(&g, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(g.worker_channels[i].send_fd >= 0);
        assert_int_equal(g.worker_channels[i].receive_fd >= 0, i == 1);
    }
    close_all();
}

static void worker_channels_without_descriptors_fail(void **state)
{
    (void)state;
    struct rlimit r, less;
    load(2, 3);
    int next = dup(STDERR_FILENO); /* the next descriptor will have this number */
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    less = (struct rlimit){.rlim_cur = (rlim_t)next + 5, .rlim_max = r.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    assert_int_equal(mk_worker_channels_open(&g), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    assert_true(g.n_worker_channels < 3);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_channels_exist_if_a_plugin_needs_them),
        cmocka_unit_test(worker_channels_keep_message_boundaries),
        cmocka_unit_test(worker_channels_keep_own_closes_other_receivers),
        cmocka_unit_test(worker_channels_without_descriptors_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
