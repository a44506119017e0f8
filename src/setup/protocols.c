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

/* A program that serves plain text need not carry HTTP/2 until a client begins with it. Workers that are
 * processes may not be allowed to load anything by then. */
static bool may_wait(const struct mk_generation *g)
{
    size_t i = 0;
    while (i < g->listens.n && !g->listens.at[i].tls && !g->listens.at[i].http2)
        i++;
    return g->embedding && i == g->listens.n;
}

static void pack_heads_with(struct mk_generation *g, mk_pack_head *pack)
{
    for (struct mk_site *s = g->sites; s; s = s->next)
        s->host.pack_head = pack;
}

void mk_protocols_load(struct mk_generation *g, struct mk_conf_report *report)
{
    const char *why = "";
    bool has_clients = g->listens.n || g->embedding; /* those of a program may be in memory */
    if (!has_clients || !(g->server.site.tls.http2 || first_alone(g)))
        return;
    g->http2_waits = may_wait(g);
    if (g->http2_waits) {
        pack_heads_with(g, mk_http2_pack_head_if_loaded);
        return;
    }
    g->http2 = mk_http2_load(&why);
    if (g->http2)
        pack_heads_with(g, g->http2->pack_head);
    else
        report_missing(g, why, report);
}
