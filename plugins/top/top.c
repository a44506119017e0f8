/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `monkey recorder` and `monkey top`, which read the recording of the plugin recorder. They need no server, so
 * they are not a part of the program. A server that loads the plugin answers them over the control socket. */
#include <errno.h>
#include <monkey/plugin.h>

#include "client.h"
#include "command.h"
#include "view.h"

static const struct mk_command recorder = {
    .name = "recorder",
    .args = "[OPTION...] [FILE]",
    .help = "Show the recorded requests (plugin recorder).",
    .run = top_client_run,
};

static const struct mk_command top = {
    .name = "top",
    .args = "[OPTION...] [FILE]",
    .help = "Show requests per second, slow and failed requests (plugin recorder).",
    .run = top_view_run,
};

static const char *const needs[] = {"recorder", NULL};

MK_PLUGIN_DECLARE(top);

static int worker_start(struct mk_worker *worker, void *data)
{
    struct top_server *s = top_server_new(worker);
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(top), s);
    return s ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    top_server_free(mk_worker_data(worker, &MK_PLUGIN_OF(top)));
}

static int on_command(struct mk_worker *worker, mk_str words, struct mk_buf *out,
                      const struct mk_command_end *end, void *data)
{
    (void)data;
    return top_command_run(mk_worker_data(worker, &MK_PLUGIN_OF(top)), words, out, end);
}

MK_PLUGIN(top) = {
    MK_PLUGIN_HEAD,
    .name = "top",
    .version = "1.0",
    .help = "Commands that show the requests that the plugin recorder has recorded.",
    .needs = needs,
    .commands = (const struct mk_command *const[]){&recorder, &top, NULL},
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_command = on_command,
};
