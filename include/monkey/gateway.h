/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers `fastcgi`, `scgi` and `uwsgi` share: they pass requests as CGI variables to a server that
 * runs scripts or a program. They belong to the plugin `upstream`; see monkey/upstream.h. */
#ifndef MONKEY_GATEWAY_H
#define MONKEY_GATEWAY_H

#include <monkey/cgi.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Describes one such handler. It is constant and lives as long as its plugin.
 *
 *     MK_PLUGIN_DECLARE(fastcgi);
 *     static const struct mk_gateway gateway = {
 *         .plugin = &MK_PLUGIN_OF(fastcgi), .wire = MK_WIRE_FASTCGI, .port = 9000, .split = ".php"};
 *
 *     static bool bind(const struct mk_conf_spot *spot, mk_str words, void **data)
 *     {
 *         return mk_gateway_bind(&gateway, spot, words, data);
 *     }
 *     static const struct mk_handler handler = {
 *         .name = "fastcgi", .form = MK_GATEWAY_FORM, .handle = mk_gateway_handle, .bind = bind};
 *
 * The plugin uses mk_gateway_load() as its `load` and mk_gateway_host() as its `host`.
 */
struct mk_gateway {
    const struct mk_plugin *plugin;
    enum mk_wire wire;
    uint16_t port;     /**< of servers written without one; 0: a port is required */
    const char *split; /**< the extension of scripts, unless the pattern or the route gives one; NULL:
                            requests go to a program, not to files */
};

/** What follows the name of the handler in [ROUTES]. */
#define MK_GATEWAY_FORM                                                                                      \
    "SERVER, which is HOST:PORT, unix:/path or the Name of an [UPSTREAM], then [root=FOLDER] "               \
    "[split=.EXTENSION|off] [set=NAME=VALUE] [stream] [paths=checked|raw] "                                  \
    "[underscores=off|on] [forwarded=off|pass] " MK_CLIENT_LIMITS_FORM

/** Call it from bind() of the handler. */
MK_API bool mk_gateway_bind(const struct mk_gateway *gateway, const struct mk_conf_spot *spot, mk_str words,
                            void **data);
/** Use it as handle() of the handler. */
MK_API enum mk_verdict mk_gateway_handle(struct mk_request *request, struct mk_response *response,
                                         void *data);
/** Use it as load() of the plugin. */
MK_API int mk_gateway_load(struct mk_config *config, void **data);
/** Use it as host() of the plugin: it finds the real path of the document root. */
MK_API int mk_gateway_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data);

#ifdef __cplusplus
}
#endif

#endif
