/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/http2_enable.h"

#include "connection/http2.h"

/* Returns the first address that accepts only HTTP/2; NULL: none. */
static const struct mk_listen *first_http2_listen(const struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].http2)
            return &g->listens.at[i];
    return NULL;
}

static void report_no_http2(const struct mk_listen *alone, struct mk_conf_report *report)
{
    mk_conf_report_error(
        report, &alone->at,
        "`Listen %.*s http2`: this server does not support HTTP/2: Monkey was built without nghttp2",
        MK_CONF_REPORT_ARG(alone->written));
    mk_conf_report_hint(report, "build with nghttp2 (libnghttp2-dev)");
}

void mk_http2_enable(struct mk_config_generation *g, struct mk_conf_report *report)
{
    const struct mk_listen *alone = first_http2_listen(g);
    bool has_clients = g->listens.n || g->embedding; /* an embedding program may have in-memory clients */
    if (!has_clients || !(g->server.site.tls.http2 || alone))
        return;
    g->http2 = mk_conn_manager_get_http2_module();
    if (g->http2)
        for (struct mk_vhost_config *s = g->sites; s; s = s->next)
            s->host.pack_head = g->http2->pack_head;
    else if (alone)
        report_no_http2(alone, report);
}
