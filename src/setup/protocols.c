/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/protocols.h"

#include "os/place.h"
#include "proto/http2.h"

/* The first address of HTTP/2 alone. */
static const struct mk_listen *first_alone(const struct mk_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].http2)
            return &g->listens.at[i];
    return NULL;
}

static void report_missing(const struct mk_generation *g, const char *why, struct mk_conf_report *report)
{
    char path[PATH_MAX];
    const struct mk_listen *alone = first_alone(g);
    if (alone) {
        mk_conf_report_error(report, &alone->at,
                             "`Listen %.*s http2`: this server does not support HTTP/2: %s",
                             MK_CONF_REPORT_ARG(alone->written), why);
        mk_conf_report_hint(report, "install the package with monkey-http2.so, or build with nghttp2 "
                                    "(libnghttp2-dev)");
    } else if (mk_place_find(MK_STR("http2"), path)) { /* it is there, and cannot be used */
        mk_conf_report_warn(report, &g->listens.at[0].at, "clients cannot speak HTTP/2: %s", why);
    }
}

void mk_protocols_load(struct mk_generation *g, struct mk_conf_report *report)
{
    const char *why = "";
    if (!g->listens.n || !(g->server.site.tls.http2 || first_alone(g)))
        return;
    g->http2 = mk_http2_load(&why);
    if (!g->http2)
        report_missing(g, why, report);
    for (struct mk_site *s = g->sites; g->http2 && s; s = s->next)
        s->host.pack_head = g->http2->pack_head;
}
