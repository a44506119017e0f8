/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for developers of services, and what the servers that `monkey run` starts need of them. */
#include "build.h"
#include "crash.h"
#include "gate.h"
#include "new.h"
#include "reasons.h"
#include "routes.h"
#include "run.h"
#include "testing.h"

#include <errno.h>
#include <monkey/routes.h>
#include <monkey/upstream.h>
#include <monkey/version.h>
#include <stdio.h>
#include <sys/prctl.h>

MK_PLUGIN_DECLARE(duda_dev);

struct settings {
    mk_str desk, names;
    bool service;
};

struct dev {
    const struct settings *settings;
};

static const struct mk_conf_key keys[] = {
    {.name = "Socket",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, desk),
     .help = "The socket of `monkey run`, which is asked about each request."},
    {.name = "AllowedHosts",
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
    struct dev *dev = mk_config_alloc(config, sizeof *dev);
    const struct settings *s = mk_config_settings(config, &table);
    if (!dev || !s)
        return -ENOMEM;
    *dev = (struct dev){.settings = s};
    dev_crash_prepare();
    if (s->service) { /* what printf(3) writes is wanted now, not when 4 KB have gathered */
        uint32_t *tries = mk_config_shared(config, MK_ROUTES_TRIED, sizeof *tries);
        if (!tries)
            return -ENOMEM;
        *tries = 1;
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
    }
    *data = dev;
    return 0;
}

/* Its name tells a debugger which of the processes of `monkey run` has the services. */
static int start(struct mk_worker *worker, void *data)
{
    const struct dev *dev = data;
    (void)worker;
    if (!dev->settings->service)
        return 0;
    (void)prctl(PR_SET_NAME, "monkey: service");
    return dev_crash_watch();
}

static void stop(struct mk_worker *worker, void *data)
{
    (void)worker, (void)data;
    dev_crash_unwatch();
    (void)fflush(stdout);
}

static int host(struct mk_config *config, struct mk_host *h, void *data, void **host_data)
{
    const struct dev *dev = data;
    (void)config, (void)h;
    if (dev->settings->desk.len || dev->settings->service)
        *host_data = data;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *s = ((const struct dev *)data)->settings;
    const struct dev_gate gate = {.desk = s->desk.p, .names = s->names};
    if (s->service) /* only the server in front can connect */
        return mk_local_backend_accept_client(request) ? MK_REFUSE : MK_NEXT;
    return s->desk.len ? dev_gate_ask(&gate, request, response) : MK_NEXT;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct dev *dev = data;
    const struct settings *s = dev->settings;
    const struct dev_gate gate = {.desk = s->desk.p};
    if (s->service) {
        dev_reasons_show(request, response);
        (void)mk_response_set(response, MK_STR("Duda-Run"), MK_STR("1"));
    }
    if (s->desk.len)
        dev_gate_mend(&gate, request, response);
}

static bool on_log(struct mk_request *request, enum mk_log_level level, mk_str message, void *data)
{
    (void)data;
    return dev_reasons_keep(request, level, message);
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
    .worker_stop = stop,
    .on_request = on_request,
    .on_response = on_response,
    .on_log = on_log,
};
