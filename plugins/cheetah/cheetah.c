/* SPDX-License-Identifier: Apache-2.0 */
/* The shell: a command line on a unix socket, for the server's administrator. */
#include <errno.h>
#include <monkey/version.h>

#include "client.h"
#include "config_client.h"
#include "message_handler.h"
#include "shell.h"
#include "socket.h"

MK_PLUGIN_DECLARE(cheetah);

static int load_plugin(struct mk_config *config, void **data)
{
    struct cheetah *c = mk_config_alloc(config, sizeof *c);
    if (!c)
        return -ENOMEM;
    *data = c;
    c->plugin = &MK_PLUGIN_OF(cheetah);
    c->fd = -1;
    c->slots = mk_config_shared(config, "cheetah/seats", sizeof *c->slots);
    if (!c->slots || cheetah_settings_read(config, &c->settings, &c->section))
        return -EINVAL;
    mk_config_allow_path(config, NULL, NULL, MK_STR("/proc/self/statm"));
    return 0;
}

static int master_start(struct mk_config *config, void *data)
{
    return cheetah_socket_open(config, data);
}

static void unload_plugin(void *data)
{
    cheetah_socket_close(data);
}

static const struct mk_command shell = {
    .name = "shell",
    .args = "[-s SOCKET] [--json] [COMMAND...]",
    .help = "Talk to the running server: status, reload, log level (plugin cheetah).",
    .run = cheetah_client_run,
};

static const struct mk_command reload = {
    .name = "reload",
    .args = "[-s SOCKET] [--confirm TIME] [--timeout TIME]",
    .help = "Reload the configuration, and wait for the result (plugin cheetah).",
    .run = cheetah_config_client_reload,
};

static const struct mk_command confirm = {
    .name = "confirm",
    .args = "",
    .help = "Keep the configuration that `reload --confirm` has loaded (plugin cheetah).",
    .run = cheetah_config_client_confirm,
};

static const struct mk_command rollback = {
    .name = "rollback",
    .args = "[NUMBER]",
    .help = "Return to an earlier configuration (plugin cheetah).",
    .run = cheetah_config_client_rollback,
};

static const struct mk_conf_table *const sections[] = {&cheetah_table, NULL};
static const struct mk_command *const verbs[] = {&shell, &reload, &confirm, &rollback, NULL};

MK_PLUGIN(cheetah) = {
    MK_PLUGIN_HEAD,
    .name = "cheetah",
    .version = MONKEY_VERSION,
    .help = "A shell into the running server: `monkey shell`.",
    .sections = sections,
    .commands = verbs,
    .load = load_plugin,
    .unload = unload_plugin,
    .master_start = master_start,
    .worker_start = cheetah_worker_start,
    .worker_stop = cheetah_worker_stop,
    .on_message = cheetah_on_message,
};
