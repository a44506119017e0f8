/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/https_rules.h"

#include <time.h>

#include "conf/table.h"
#include "setup/keys.h"
#include "setup/keys_tls.h"
#include "setup/listen_addresses.h"

enum { HTTPS_PORT = 443 };

struct rules_builder {
    struct mk_config_generation *g;
    struct mk_conf_report *report;
};

struct mk_conf_source_pos mk_https_rules_key_pos(const struct mk_config_generation *g,
                                                 const struct mk_vhost_config *s, const char *key)
{
    const struct mk_conf_section *server = mk_conf_tree_find(&g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e = mk_conf_table_find_entry(s->section, mk_str_from_c(key));
    if (!e && server)
        e = mk_conf_table_find_entry(server, mk_str_from_c(key));
    return e ? mk_conf_tree_value_pos(e, e->value) : s->section->at;
}

void mk_https_rules_format_date(int64_t when, char buf[MK_HTTPS_RULES_DATE])
{
    time_t t = (time_t)when;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(buf, MK_HTTPS_RULES_DATE, "%Y-%m-%d %H:%M UTC", &tm))
        buf[0] = '\0';
}

/* ---- Client certificates ---- */

/* Returns an ID that hosts with equal client certificate rules share; 0: no rules. */
static unsigned client_rules_id(const struct rules_builder *b, const struct mk_vhost_config *s)
{
    const struct mk_tls_settings *mine = &s->settings.site.tls;
    unsigned n = 1;
    if (!mine->clients)
        return 0;
    for (const struct mk_vhost_config *x = b->g->sites; x != s; x = x->next, n++)
        if (x->settings.site.tls.clients == mine->clients &&
            mk_str_eq(x->settings.site.tls.client_authority, mine->client_authority))
            break;
    return n;
}

/* Sets the client certificate rules of a host. They apply even without a TLS listener: a host that requires
 * client certificates must not serve plain requests. */
static void set_client_rules(struct rules_builder *b, struct mk_vhost_config *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    s->host.client_rules_id = client_rules_id(b, s);
    s->host.client_required = t->clients == MK_TLS_CLIENTS_REQUIRED;
    for (size_t i = 0; i < b->g->listens.n; i++)
        b->g->listens.at[i].hosts->client_rules |= t->clients != MK_TLS_CLIENTS_OFF;
    struct mk_conf_source_pos at = mk_https_rules_key_pos(b->g, s, "ClientCertificates");
    if (t->clients && !t->client_authority.p)
        mk_conf_report_error(
            b->report, &at,
            "ClientCertificates needs a ClientAuthority: expected a file with the certificates "
            "of the authorities that issue client certificates");
}

/* ---- HSTS and redirects ---- */

static void set_hsts(struct rules_builder *b, struct mk_vhost_config *s)
{
    const struct mk_hsts *h = &s->settings.site.tls.hsts;
    if (!h->on)
        return;
    s->host.hsts = mk_arena_printf(&b->g->arena, "max-age=%llu%s%s", (unsigned long long)(h->age_ms / 1000),
                                   h->subdomains ? "; includeSubDomains" : "", h->preload ? "; preload" : "");
}

/* Returns 443 if it is a TLS port, or else the first TLS port; 0: none. If `s` is not NULL, only addresses of
 * this host count. */
static uint32_t https_port(const struct mk_config_generation *g, const struct mk_vhost_config *s)
{
    uint32_t port = 0;
    for (size_t i = g->listens.n; i-- > 0;) {
        const struct mk_listen *l = &g->listens.at[i];
        uint32_t its = mk_sockaddr_port(&l->addr);
        if (l->tls && its && port != HTTPS_PORT && (!s || mk_listen_addresses_serves(l, s)))
            port = its;
    }
    return port;
}

/* Returns the HTTPS port of a host. If the host has no TLS address, returns that of any host: another [HOST]
 * may serve the same names over TLS. */
static uint32_t find_https_port(const struct mk_config_generation *g, const struct mk_vhost_config *s)
{
    uint32_t port = https_port(g, s);
    return port ? port : https_port(g, NULL);
}

static void set_https_redirect(struct rules_builder *b, struct mk_vhost_config *s)
{
    uint32_t expected = s->settings.site.tls.redirect;
    uint32_t port = expected == MK_HTTPS_ON ? find_https_port(b->g, s) : expected;
    struct mk_conf_source_pos at = mk_https_rules_key_pos(b->g, s, "RedirectToHTTPS");
    if (expected && !port) {
        mk_conf_report_error(b->report, &at, "RedirectToHTTPS: no Listen has `tls` on a known port");
        mk_conf_report_hint(b->report, "add `Listen 443 tls`, or name the port: `RedirectToHTTPS 443`");
    }
    s->host.https_port = port;
}

/* ---- All hosts ---- */

/* Does every address have valid hosts? If not, the error was reported. */
static bool are_hosts_assigned(const struct mk_config_generation *g)
{
    bool ok = g->sites && g->listens.n;
    for (size_t i = 0; i < g->listens.n; i++)
        ok = ok && g->listens.at[i].hosts && g->listens.at[i].hosts->fallback;
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        ok = ok && s->hosts;
    return ok;
}

bool mk_https_rules_setup(struct mk_config_generation *g, struct mk_conf_report *report)
{
    struct rules_builder b = {.g = g, .report = report};
    if (!are_hosts_assigned(g))
        return false;
    for (struct mk_vhost_config *s = g->sites; s; s = s->next) {
        set_hsts(&b, s);
        set_https_redirect(&b, s);
        set_client_rules(&b, s);
    }
    return true;
}
