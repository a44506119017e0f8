/* SPDX-License-Identifier: Apache-2.0 */
/* The commands `monkey recorder` and `monkey top`, which read the recording of the plugin recorder. They need no server, so
 * they are not a part of the program. */
#include <monkey/plugin.h>

#include "client.h"
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

MK_PLUGIN(top) = {
    MK_PLUGIN_HEAD,
    .name = "top",
    .version = "1.0",
    .help = "Commands that show the requests that the plugin recorder has recorded.",
    .commands = (const struct mk_command *const[]){&recorder, &top, NULL},
};
