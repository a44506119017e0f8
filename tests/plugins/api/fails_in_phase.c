/* SPDX-License-Identifier: Apache-2.0 */
/* Fails in the phase that its section names: load, host, master or worker; or adds an invalid route. */
#include <errno.h>
#include <monkey/plugin.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum what { NOTHING, LOAD, HOST, MASTER, WORKER, ROUTE, LOAD_CRASH, HOST_EXIT, LATER, LATE };

struct fail_config {
    enum what what;
};

static const char *const words[] = {"nothing", "load", "host",  "master", "worker", "route",
                                    "crash",   "exit", "later", "late",   NULL};

static const struct mk_conf_key keys[] = {
    {.name = "What",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct fail_config, what),
     .choices = words,
     .default_value = "nothing"},
};

static const struct mk_conf_table table = {
    .section = "FAIL", .keys = keys, .n = 1, .size = sizeof(struct fail_config), .scope = MK_CONF_SERVER};

static void break_down(const struct fail_config *c, enum what now)
{
    if (c && c->what == now && now == LOAD_CRASH)
        raise(SIGSEGV);
    if (c && c->what == now && now == HOST_EXIT)
        _Exit(1);
}

static int if_it_is(const struct fail_config *c, enum what what)
{
    return c && c->what == what ? -EXDEV : 0;
}

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_section(config, &table, NULL);
    break_down(*data, LOAD_CRASH);
    return if_it_is(*data, LOAD);
}

static enum mk_verdict pass(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)response, (void)data;
    return MK_NEXT;
}

static const struct mk_handler handler = {.name = "pass", .handle = pass};

static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    (void)h, (void)host_data;
    if (if_it_is(data, ROUTE))
        mk_config_add_route(config, MK_STR("no/pattern"), &handler, NULL);
    break_down(data, HOST_EXIT);
    return if_it_is(data, HOST);
}

static int event_fd; /* readable after the first call of await() */
static unsigned n_calls;

/* Is ready in the second call, which follows an event; if LATE, there is no event, and it is never ready. */
static int await(struct mk_config *config, void *data)
{
    n_calls++;
    if (if_it_is(data, LATE))
        mk_config_warn(config, NULL, NULL, "call %u", n_calls);
    else if (n_calls == 2)
        return if_it_is(data, LATER);
    else if (eventfd_write(event_fd, 1) < 0)
        return -errno;
    return -EAGAIN;
}

static int master_start(struct mk_config *config, void *data)
{
    uint32_t timeout_ms = if_it_is(data, LATE) ? 400 : 60000;
    n_calls = 0;
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0)
        return -errno;
    int e = mk_config_wait_ready(config, event_fd, timeout_ms, await, data);
    return e ? e : if_it_is(data, MASTER);
}

static void unload(void *data)
{
    (void)data;
    if (event_fd > 0)
        close(event_fd);
    event_fd = 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    (void)worker;
    return if_it_is(data, WORKER);
}

MK_PLUGIN(fails_in_phase) = {
    MK_PLUGIN_HEAD,
    .name = "fails-in-phase",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .load = load,
    .host = host,
    .unload = unload,
    .master_start = master_start,
    .worker_start = worker_start,
};
