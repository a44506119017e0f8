/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers `fastcgi`, `scgi` and `uwsgi` have in common: scripts and programs that are behind
 * another server and get the variables of CGI. Its functions are in monkey-upstream.so. */
#ifndef MONKEY_GATEWAY_H
#define MONKEY_GATEWAY_H

#include <monkey/cgi.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One such handler: constant, and as long-lived as its plugin.
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
 * The plugin has mk_gateway_load() as its `load` and mk_gateway_host() as its `host`.
 */
struct mk_gateway {
    const struct mk_plugin *plugin;
    enum mk_wire wire;
    uint16_t port;     /**< of a server that is named without one; 0: it must have one */
    const char *split; /**< how names of scripts end where neither the pattern nor the route says it; NULL:
                            requests are for a program, not for files */
};

/** What follows the name of the handler in [ROUTES]. */
#define MK_GATEWAY_FORM                                                                                      \
    "SERVER, which is HOST:PORT, unix:/path or the Name of an [UPSTREAM], then [root=FOLDER] "               \
    "[split=.EXTENSION|off] [set=NAME=VALUE] [stream] " MK_CLIENT_LIMITS_FORM

/** For bind() of the handler. */
MK_API bool mk_gateway_bind(const struct mk_gateway *gateway, const struct mk_conf_spot *spot, mk_str words,
                            void **data);
/** Is handle() of the handler. */
MK_API enum mk_verdict mk_gateway_handle(struct mk_request *request, struct mk_response *response,
                                         void *data);
/** Is load() of the plugin. */
MK_API int mk_gateway_load(struct mk_config *config, void **data);
/** Is host() of the plugin: looks where the document root really is. */
MK_API int mk_gateway_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data);

#ifdef __cplusplus
}
#endif

#endif
