/* SPDX-License-Identifier: Apache-2.0 */
/* Fails in the phase that its section names: load, host, master or worker; or adds an invalid route. */
#include <errno.h>
#include <monkey/plugin.h>
#include <signal.h>
#include <stdlib.h>

enum what { NOTHING, LOAD, HOST, MASTER, WORKER, ROUTE, LOAD_CRASH, HOST_EXIT, LATER };

struct fail_config {
    enum what what;
};

static const char *const words[] = {"nothing", "load",  "host", "master", "worker",
                                    "route",   "crash", "exit", "later",  NULL};

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

/* Succeeds only after a few polls. */
static int await(struct mk_config *config, void *data)
{
    static int n_polls;
    (void)config;
    return ++n_polls % 3 ? -EAGAIN : if_it_is(data, LATER);
}

static int master_start(struct mk_config *config, void *data)
{
    return mk_config_wait_ready(config, await, data) ? if_it_is(data, MASTER) : -ENOMEM;
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
    .master_start = master_start,
    .worker_start = worker_start,
};
