/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/upstream.h>
#include <monkey/version.h>

MK_PLUGIN_DECLARE(scgi);

static const struct mk_gateway gateway = {
    .plugin = &MK_PLUGIN_OF(scgi), .protocol = MK_UPSTREAM_PROTOCOL_SCGI, .port = 4000};

static bool bind(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_gateway_bind(&gateway, spot, words, data);
}

static const struct mk_handler handler = {
    .name = "scgi",
    .form = MK_GATEWAY_FORM,
    .handle = mk_gateway_handle,
    .bind = bind,
    .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(scgi) = {
    MK_PLUGIN_HEAD,
    .name = "scgi",
    .version = MONKEY_VERSION,
    .help = "Passes requests to SCGI servers.",
    .handlers = handlers,
    .load = mk_gateway_load,
    .host = mk_gateway_host,
    .needs = needs,
};
