/* SPDX-License-Identifier: Apache-2.0 */
/* An upstream with servers on 127.0.0.1, whose ports the test listens on, and a worker's pool for it. */
#ifndef MK_UNIT_UPSTREAM_FIXTURE_H
#define MK_UNIT_UPSTREAM_FIXTURE_H

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/fd.h"
#include "unit/harness.h"
#include "unit/upstream/fake_worker.h"

enum { SERVERS_MAX = 4 };

static struct mk_worker worker;
static struct mk_upstream_settings settings;
static struct mk_upstream_server servers[SERVERS_MAX];
static struct mk_upstream upstream;
static struct mk_upstreams upstreams;
static struct mk_pool *pool;
static int listening[SERVERS_MAX];
static char hosts[SERVERS_MAX][16];
static int event = -1; /* eventfd that wakes workers */

static inline int listen_on(uint16_t *port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(*port)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    assert_true(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static inline void stop_server(unsigned i)
{
    mk_fd_close(&listening[i]);
}

/* Creates the pool. Call it after changing the settings and the upstream. */
static inline void upstream_init(unsigned n)
{
    worker = (struct mk_worker){0};
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(event >= 0);
    assert_int_equal(mk_loop_init(&worker.loop), 0);
    settings = (struct mk_upstream_settings){.connect_ms = 5000,
                                             .queue_ms = 30000,
                                             .queue_max = 100,
                                             .max_fails = 3,
                                             .fail_ms = 10000,
                                             .resolve_ms = 30000};
    upstreams = (struct mk_upstreams){.plugin = &MK_PLUGIN_OF(upstream),
                                      .first = &upstream,
                                      .last = &upstream,
                                      .n = 1,
                                      .n_servers = n,
                                      .client_key = {1, 2}};
    upstreams.limit.on_empty = mk_upstream_stats_clear_worker;
    upstreams.limit.ctx = &upstreams.stats;
    assert_true(mk_upstream_stats_init(&upstreams.stats, NULL) && mk_conn_limit_init(&upstreams.limit, NULL));
    for (unsigned i = 0; i < MK_CONN_LIMIT_EVENTS; i++)
        upstreams.limit.events[i] = event;
    upstream = (struct mk_upstream){.name = MK_STR_INIT("u"),
                                    .settings = &settings,
                                    .all = &upstreams,
                                    .servers = servers,
                                    .n = n,
                                    .keep = 8,
                                    .idle_ms = 60000};
    for (unsigned i = 0; i < SERVERS_MAX; i++)
        listening[i] = -1;
    for (unsigned i = 0; i < n; i++) {
        uint16_t port = 0;
        listening[i] = listen_on(&port);
        (void)snprintf(hosts[i], sizeof hosts[i], "127.0.0.1");
        servers[i] = (struct mk_upstream_server){.upstream = &upstream,
                                                 .name = mk_str_from_c(hosts[i]),
                                                 .host = mk_str_from_c(hosts[i]),
                                                 .port = port,
                                                 .index = (uint16_t)i,
                                                 .weight = 1};
        char name[32];
        (void)snprintf(name, sizeof name, "127.0.0.1:%u", port);
        servers[i].key = mk_upstream_stats_key(upstream.name, mk_str_from_c(name));
        servers[i].stats_slot = i;
        assert_true(mk_upstream_stats_assign_slot(&upstreams.stats, i, upstream.name, mk_str_from_c(name)));
        servers[i].shared = mk_upstream_stats_shared(&upstreams.stats, i);
        mk_conn_limit_reset_backend(&upstreams.limit, i);
    }
}

static inline void start_pool(void)
{
    assert_int_equal(mk_pool_start(&pool, &worker, &upstreams), 0);
    worker.data = pool;
}

/* Wakes this worker as another worker would. */
static inline void wake(void)
{
    mk_conn_limit_wake_row(&upstreams.limit, servers[0].stats_slot, pool->row);
    run_once(&worker);
}

static inline void upstream_fini(void)
{
    mk_pool_stop(pool);
    mk_loop_run_tasks(&worker.loop);
    mk_loop_fini(&worker.loop);
    free_shared(&upstreams.stats, &upstreams.limit);
    mk_fd_close(&event);
    for (unsigned i = 0; i < SERVERS_MAX; i++)
        mk_fd_close(&listening[i]);
}

/* The notifications that a request has received. */
struct notification {
    unsigned n, which;
};

static inline void upstream_teardown(void *p)
{
    (void)p;
    upstream_fini();
}

/* Like upstream_init(), with cleanup at the end of the test case. */
static inline void upstream_setup(unsigned n)
{
    upstream_init(n);
    harness_defer(upstream_teardown, NULL);
}

/* Setup of tests with two servers. */
static inline void setup_two(void)
{
    upstream_setup(2);
}

static inline void note(void *ctx, unsigned which)
{
    struct notification *t = ctx;
    t->n++;
    t->which |= which;
}

static inline struct mk_upstream_conn *acquire_with(struct notification *t,
                                                    struct mk_upstream_conn_options options)
{
    *t = (struct notification){0};
    struct mk_upstream_conn *l = mk_upstream_conn_acquire(&worker, &upstream, &options, note, t);
    assert_non_null(l);
    return l;
}

static inline struct mk_upstream_conn *acquire(struct notification *t)
{
    return acquire_with(t, (struct mk_upstream_conn_options){.server = -1});
}

static inline struct backend_stats stats_of(unsigned i)
{
    return sum_stats(&upstreams.stats, servers[i].stats_slot);
}

static inline int accept_from(unsigned i)
{
    int fd = accept4(listening[i], NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline void wait_until_open(struct mk_upstream_conn *l)
{
    for (int i = 0; mk_upstream_conn_state(l) == -EAGAIN && i < 100; i++)
        assert_int_equal(mk_loop_run_once(&worker.loop, 10), 0);
    assert_int_equal(mk_upstream_conn_state(l), 0);
}

#endif
