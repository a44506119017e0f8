/* SPDX-License-Identifier: Apache-2.0 */
/* Worker messages when memory runs out: each is sent completely or rejected. */
#include "unit/oom.h"

#include "setup/plugins.h"
#include "setup/worker_channels.h"
#include "worker/worker.h"
#include "worker/worker_messages.h"

static struct mk_config_generation g;
static struct mk_worker w[2];
static size_t n_received;

static void on_message(struct mk_worker *worker, mk_str message, void *data)
{
    (void)worker, (void)data;
    n_received += message.len;
}

static const struct mk_plugin plugin = {MK_PLUGIN_HEAD, .name = "echo", .on_message = on_message};

static bool exchange_messages(void)
{
    static const char text[3000];
    static struct mk_loaded_plugin loaded = {.object.plugin = &plugin};
    size_t sent = 0;
    n_received = 0;
    g = (struct mk_config_generation){.plugins_by_order = {&loaded}, .n_plugins = 1, .server.workers = 2};
    mk_arena_init(&g.arena, NULL);
    bool ok = mk_worker_channels_open(&g) == 0;
    for (unsigned i = 0; i < 2; i++) {
        w[i] = (struct mk_worker){.generation = &g, .count = 2, .index = i, .n_started = 1, .master_fd = -1};
        assert_int_equal(mk_loop_init(&w[i].loop), 0);
        mk_worker_messages_init(&w[i]);
        assert_int_equal(mk_worker_messages_start(&w[i]), 0);
    }
    for (size_t len = 1; ok && len < sizeof text; len *= 2) {
        sent += mk_worker_send(&w[0], &plugin, 1, mk_str_of(text, len)) == 0 ? len : 0;
        sent += mk_worker_send(&w[1], &plugin, 1, mk_str_of(text, len)) == 0 ? len : 0;
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(mk_loop_run_once(&w[i].loop, 0), 0);
    assert_int_equal(n_received, sent);
    for (unsigned i = 0; i < 2; i++) {
        mk_worker_messages_fini(&w[i]);
        mk_loop_fini(&w[i].loop);
    }
    mk_worker_channels_close(&g);
    mk_arena_fini(&g.arena);
    return oom.n_failed == 0;
}

static void worker_messages_oom_complete_or_rejected(void **state)
{
    (void)state;
    oom_at_each_allocation(exchange_messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_messages_oom_complete_or_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
