/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/plugin.h>

#include "call.h"

static const struct mk_handler handler = {
    .name = "proxy", .form = proxy_route_form, .handle = proxy_call_handle, .bind = proxy_route_bind};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD,        .name = "proxy",
    .version = MK_VERSION, .help = "Passes requests to HTTP servers behind this one.",
    .handlers = handlers,  .needs = needs,
};
