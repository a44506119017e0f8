/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies requests in logs, responses and backends: request IDs and W3C Trace Context. */
#include "settings.h"

#include <monkey/trace.h>

/* Runs after the plugin `security`, which knows the trusted proxies, and before all plugins that log. */
enum { PRIORITY = MK_PRIORITY_ADDRESS + 1 };

static int bind_vhost(struct mk_config *config, struct mk_vhost *host, void *data, void **host_data)
{
    struct tracing_settings *s = mk_config_section(config, &tracing_table, NULL);
    (void)host, (void)data;
    if (s && s->trace_context)
        mk_config_start_traces(config, s->sample);
    if (s && s->request_id)
        *host_data = s;
    return 0;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    (void)response, (void)host_data;
    (void)mk_request_log_id(request);
    return MK_NEXT;
}

/* A plugin with a lower priority value may have rejected the request before on_request was called. */
static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    static const mk_str name = MK_STR_INIT(MK_REQUEST_ID_HEADER);
    (void)host_data;
    mk_str id = mk_request_log_id(request);
    if (mk_response_header(response, name).p)
        (void)mk_response_set_header(response, name, id);
    else
        (void)mk_response_add_header_nocopy(response, name, id);
}

MK_PLUGIN(tracing) = {
    MK_PLUGIN_HEAD,
    .name = "tracing",
    .version = "1.0",
    .help = "Gives requests IDs, and passes traces to backends.",
    .priority = PRIORITY,
    .sections = (const struct mk_conf_table *const[]){&tracing_table, NULL},
    .host = bind_vhost,
    .on_request = on_request,
    .on_response = on_response,
};
