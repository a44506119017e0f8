/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for developers of services, and what the servers that `monkey run` starts need of them. */
#include "build.h"
#include "crash.h"
#include "gate.h"
#include "new.h"
#include "routes.h"
#include "run.h"
#include "testing.h"

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/version.h>

MK_PLUGIN_DECLARE(duda_dev);

struct settings {
    mk_str desk, names;
    bool service;
};

static const struct mk_conf_key keys[] = {
    {.name = "Desk",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, desk),
     .help = "The socket of `monkey run`, which is asked about each request."},
    {.name = "Names",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, names),
     .help = "Names of hosts that are answered, beside localhost and addresses."},
    {.name = "Service",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct settings, service),
     .def = "off",
     .help = "This server runs the services: its crashes are reported."},
};

static const struct mk_conf_table table = {
    .section = "DUDA_DEV",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = "Written by `monkey run` for the servers that it starts; of no use in other configurations.",
    .size = sizeof(struct settings),
    .scope = MK_CONF_SERVER,
};

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_settings(config, &table);
    dev_crash_prepare();
    return *data ? 0 : -ENOMEM;
}

static int start(struct mk_worker *worker, void *data)
{
    const struct settings *s = data;
    (void)worker;
    return s->service ? dev_crash_watch() : 0;
}

static int host(struct mk_config *config, struct mk_host *h, void *data, void **host_data)
{
    const struct settings *s = data;
    (void)config, (void)h;
    if (s->desk.len || s->service)
        *host_data = data;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *s = data;
    const struct dev_gate gate = {.desk = s->desk.p, .names = s->names};
    return s->desk.len ? dev_gate_ask(&gate, request, response) : MK_NEXT;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *s = data;
    const struct dev_gate gate = {.desk = s->desk.p};
    if (s->service)
        (void)mk_response_set(response, MK_STR("Duda-Run"), MK_STR("1"));
    if (s->desk.len)
        dev_gate_mend(&gate, request, response);
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const struct mk_verb *const verbs[] = {
    &dev_verb_run, &dev_verb_new, &dev_verb_test, &dev_verb_routes, &dev_verb_doc, &dev_verb_build, NULL};

MK_PLUGIN(duda_dev) = {
    MK_PLUGIN_HEAD,
    .name = "duda-dev",
    .version = MK_VERSION,
    .help = "Commands for developers of services in C.",
    .order = MK_ORDER_ADDRESS,
    .sections = sections,
    .verbs = verbs,
    .load = load,
    .host = host,
    .worker_start = start,
    .on_request = on_request,
    .on_response = on_response,
};
