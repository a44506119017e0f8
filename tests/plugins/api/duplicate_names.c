/* SPDX-License-Identifier: Apache-2.0 */
/* Adds names that are already taken: a section of the probe plugin, a handler of the response-kinds plugin,
 * and one of the server's own sections. */
#include <monkey/plugin.h>

static const struct mk_conf_table section = {.section = "Probe"}, server = {.section = "SERVER"};
static const struct mk_conf_table *const sections[] = {&section, &server, NULL};

static enum mk_verdict pass(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)response, (void)data;
    return MK_NEXT;
}

static const struct mk_handler handler = {.name = "Text", .handle = pass};
static const struct mk_handler *const handlers[] = {&handler, NULL};

MK_PLUGIN(duplicate_names) = {MK_PLUGIN_HEAD, .name = "duplicate-names", .sections = sections,
                              .handlers = handlers};
