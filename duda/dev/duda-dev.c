/* SPDX-License-Identifier: Apache-2.0 */
/* The commands for developers of services, and the plugin of the two servers that `monkey run` starts. */
#include "command_build.h"
#include "command_new.h"
#include "command_routes.h"
#include "command_run.h"
#include "command_test.h"
#include "crash.h"
#include "error_reason.h"
#include "front_hook.h"
#include "request_messages.h"

#include <errno.h>
#include <monkey/route_stats.h>
#include <monkey/upstream.h>
#include <monkey/version.h>
#include <stdio.h>
#include <sys/prctl.h>

MK_PLUGIN_DECLARE(duda_dev);

struct settings {
    mk_str socket_path, names;
    bool service, quiet;
};

struct dev {
    const struct settings *settings;
    const struct duda_backtrace_running *running;
};

static const struct mk_conf_key keys[] = {
    {.name = "Socket",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct settings, socket_path),
     .help = "Socket of `monkey run`, to which the front server sends each request for approval."},
    {.name = "AllowedHosts",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct settings, names),
     .help = "Host names that the front server accepts, besides localhost and addresses."},
    {.name = "Service",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct settings, service),
     .default_value = "off",
     .help = "This server runs the services, so it reports their crashes."},
    {.name = "Quiet",
     .type = MK_CONF_BOOL,
     MK_CONF_AT(struct settings, quiet),
     .default_value = "off",
     .help = "Do not print a line for each request."},
};

static const struct mk_conf_table table = {
    .section = "DUDA_DEV",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = "Settings that `monkey run` writes for the servers that it starts; of no use in other "
            "configurations.",
    .size = sizeof(struct settings),
    .scope = MK_CONF_SERVER,
};

static int load_plugin(struct mk_config *config, void **data)
{
    struct dev *dev = mk_config_alloc(config, sizeof *dev);
    const struct settings *s = mk_config_settings(config, &table);
    if (!dev || !s)
        return -ENOMEM;
    *dev = (struct dev){.settings = s};
    dev_crash_preload();
    if (s->service) { /* line-buffers standard output, so that printf(3) of services appears at once */
        uint32_t *tries = mk_config_shared(config, MK_ROUTES_DEV_MODE, sizeof *tries);
        if (!tries)
            return -ENOMEM;
        *tries = 1;
        dev->running = mk_config_shared(config, DUDA_BACKTRACE_RUNNING, sizeof *dev->running);
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
    }
    *data = dev;
    return 0;
}

/* Sets the process name, which tells users of a debugger which process of `monkey run` runs the services. */
static int on_worker_start(struct mk_worker *worker, void *data)
{
    const struct dev *dev = data;
    (void)worker;
    if (!dev->settings->service)
        return 0;
    (void)prctl(PR_SET_NAME, "monkey: service");
    return dev_crash_install_handlers(dev->running);
}

static void expect_worker_exit(struct mk_worker *worker, void *data)
{
    (void)worker, (void)data;
    dev_crash_ignore_exit();
    (void)fflush(stdout);
}

static int configure_host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    const struct dev *dev = data;
    (void)config, (void)h;
    if (dev->settings->socket_path.len || dev->settings->service)
        *host_data = data;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct settings *s = ((const struct dev *)data)->settings;
    const struct dev_front_hook gate = {.socket_path = s->socket_path.p, .names = s->names};
    if (s->service) /* only the front server may connect */
        return mk_local_backend_accept_client(request) ? MK_ERROR : MK_NEXT;
    return s->socket_path.len ? dev_front_hook_on_request(&gate, request, response) : MK_NEXT;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct dev *dev = data;
    const struct settings *s = dev->settings;
    const struct dev_front_hook gate = {.socket_path = s->socket_path.p};
    if (s->service) {
        dev_error_reason_on_response(request, response);
        (void)mk_response_set_header(response, MK_STR("Duda-Run"), MK_STR("1"));
    }
    if (s->socket_path.len)
        dev_front_hook_on_response(&gate, request, response);
}

static void on_done(const struct mk_access_record *record, void *data)
{
    const struct dev *dev = data;
    if (dev->settings->socket_path.len && !dev->settings->quiet)
        dev_front_hook_on_done(record);
}

static bool on_log(struct mk_request *request, enum mk_log_level level, mk_str message, void *data)
{
    (void)data;
    return dev_request_messages_add(request, level, message);
}

static const struct mk_conf_table *const sections[] = {&table, NULL};
static const struct mk_command *const verbs[] = {
    &dev_command_run, &dev_command_new,     &dev_command_test,  &dev_command_routes,
    &dev_command_doc, &dev_command_openapi, &dev_command_build, NULL};

MK_PLUGIN(duda_dev) = {
    MK_PLUGIN_HEAD,
    .name = "duda-dev",
    .version = MK_VERSION,
    .help = "Provides commands for developers of services in C.",
    .priority = MK_PRIORITY_ADDRESS,
    .sections = sections,
    .commands = verbs,
    .load = load_plugin,
    .host = configure_host,
    .worker_start = on_worker_start,
    .worker_stop = expect_worker_exit,
    .on_request = on_request,
    .on_response = on_response,
    .on_done = on_done,
    .on_log = on_log,
};
