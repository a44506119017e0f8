/* SPDX-License-Identifier: Apache-2.0 */
/* The shell: a command line on a unix socket, for whoever runs the server. */
#include <errno.h>
#include <monkey/version.h>

#include "client.h"
#include "note.h"
#include "socket.h"

static int load(struct mk_config *config, void **data)
{
    struct cheetah *c = mk_config_alloc(config, sizeof *c);
    if (!c)
        return -ENOMEM;
    *data = c;
    c->fd = -1;
    c->seats = mk_config_shared(config, "cheetah/seats", sizeof *c->seats);
    if (!c->seats || shell_settings_read(config, &c->settings, &c->section))
        return -EINVAL;
    mk_config_allow_path(config, MK_STR("/proc/self/statm"));
    return 0;
}

static int master_start(struct mk_config *config, void *data)
{
    return shell_socket_open(config, data);
}

static void unload(void *data)
{
    shell_socket_close(data);
}

static const struct mk_verb shell = {
    .name = "shell",
    .args = "[-s SOCKET] [--json] [COMMAND...]",
    .help = "talks to the server that runs: what it does, reload, log level (plugin cheetah)",
    .run = shell_client_run,
};

static const struct mk_conf_table *const sections[] = {&shell_table, NULL};
static const struct mk_verb *const verbs[] = {&shell, NULL};

MK_PLUGIN(cheetah) = {
    MK_PLUGIN_HEAD,
    .name = "cheetah",
    .version = MONKEY_VERSION,
    .help = "A shell for the server that runs: `monkey shell`.",
    .sections = sections,
    .verbs = verbs,
    .load = load,
    .unload = unload,
    .master_start = master_start,
    .worker_start = shell_start,
    .worker_stop = shell_stop,
    .on_message = shell_note_arrives,
};
