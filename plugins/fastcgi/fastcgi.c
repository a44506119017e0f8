/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/upstream.h>
#include <monkey/version.h>

MK_PLUGIN_DECLARE(fastcgi);

static const struct mk_gateway gateway = {.plugin = &MK_PLUGIN_OF(fastcgi),
                                          .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI,
                                          .port = 9000,
                                          .split = ".php"};

static bool bind(const struct mk_conf_spot *spot, mk_str words, void **data)
{
    return mk_gateway_bind(&gateway, spot, words, data);
}

static const struct mk_handler handler = {
    .name = "fastcgi",
    .form = MK_GATEWAY_FORM,
    .handle = mk_gateway_handle,
    .bind = bind,
    .traits = MK_HANDLER_FILES | MK_HANDLER_FORWARDS,
};

static const struct mk_handler *const handlers[] = {&handler, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(fastcgi) = {
    MK_PLUGIN_HEAD,
    .name = "fastcgi",
    .version = MONKEY_VERSION,
    .help = "Passes requests to FastCGI servers: PHP-FPM and others.",
    .handlers = handlers,
    .load = mk_gateway_load,
    .host = mk_gateway_host,
    .needs = needs,
};
