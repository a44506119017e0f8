/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/certificates.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "conf/table.h"
#include "settings/keys.h"
#include "settings/keys_tls.h"
#include "setup/addresses.h"

enum { WARN_DAYS = 14, DAY_S = 86400, HTTPS_PORT = 443 };

/* A certificate whose files cannot be used now: that of the previous generation stays. */
struct kept {
    struct kept *next;
    const char *certificate;
    const struct mk_tls_context *context;
};

struct build {
    struct mk_generation *g;
    struct mk_conf_report *report;
    struct kept *kept;
};

static const struct mk_listen *first_listen(const struct mk_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls)
            return &g->listens.at[i];
    return NULL;
}

/* The default host of the site's address. */
static const struct mk_site *fallback_of(const struct mk_site *s)
{
    return s->hosts->fallback->source;
}

/* The place of the key in the host's section or, without one there, in [SERVER]. */
static struct mk_conf_source_pos place_of(const struct build *b, const struct mk_site *s, const char *key)
{
    const struct mk_conf_section *server = mk_conf_tree_find(&b->g->tree, MK_STR("SERVER"));
    const struct mk_conf_entry *e =
        mk_conf_table_entry(mk_keys_tables[MK_SECTION_HOST], s->section, mk_str_from_c(key));
    if (!e && server)
        e = mk_conf_table_entry(mk_keys_tables[MK_SECTION_SERVER], server, mk_str_from_c(key));
    return e ? mk_conf_tree_value_pos(e, e->value) : s->section->at;
}

/* ---- Which files ---- */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool is_usable(const struct mk_brought *b)
{
    return !b->failed && is_there(b->pair.certificate) && (!b->pair.key || is_there(b->pair.key));
}

static bool has_own(const struct build *b, const struct mk_site *s)
{
    const struct mk_certificates *c = &s->settings.site.tls.certificates;
    return c->n && c->at != b->g->server.site.tls.certificates.at;
}

static bool has_brought(const struct mk_site *s)
{
    for (const struct mk_brought *one = s->brought; one; one = one->next)
        if (is_usable(one))
            return true;
    return false;
}

static bool has_any(const struct mk_site *s)
{
    return s->settings.site.tls.certificates.n || has_brought(s);
}

static void watch(struct build *b, const char *path)
{
    if (path)
        (void)!mk_watched_add(&b->g->watched, &b->g->arena, path);
}

/* Call it before the files are read, so that a later change is noticed. */
static void watch_files(struct build *b, const struct mk_site *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    for (size_t i = 0; i < t->certificates.n; i++) {
        watch(b, t->certificates.at[i].file.p);
        watch(b, t->certificates.at[i].key.p);
        watch(b, t->certificates.at[i].ocsp.p);
    }
    for (const struct mk_brought *one = s->brought; one; one = one->next) {
        watch(b, one->pair.certificate);
        watch(b, one->pair.key);
    }
    watch(b, t->client_authority.p);
}

struct pairs {
    struct mk_tls_pair *at;
    size_t n;
};

static const struct mk_tls_context *find_kept(const struct build *b, const char *certificate)
{
    const struct kept *k = b->kept;
    while (k && strcmp(k->certificate, certificate) != 0)
        k = k->next;
    return k ? k->context : NULL;
}

static bool uses_kept(const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        if (pairs->at[i].kept_by)
            return true;
    return false;
}

/* The host's own certificates and those from plugins; without either, the inherited ones. A host without any
 * certificate uses that of the default host. */
static bool collect(struct build *b, const struct mk_site *s, struct pairs *out)
{
    const struct mk_site *from = has_any(s) ? s : fallback_of(s);
    const struct mk_certificates *c = &from->settings.site.tls.certificates;
    size_t n = c->n;
    for (const struct mk_brought *one = from->brought; one; one = one->next)
        n++;
    *out = (struct pairs){.at = mk_arena_zalloc(&b->g->arena, n ? n : 1, sizeof *out->at)};
    if (!out->at)
        return false;
    for (const struct mk_brought *one = from->brought; one; one = one->next)
        if (is_usable(one))
            out->at[out->n++] = one->pair;
    bool wants_written = !out->n || has_own(b, from);
    for (size_t i = 0; i < c->n && wants_written; i++) {
        const struct mk_certificate *one = &c->at[i];
        out->at[out->n++] =
            (struct mk_tls_pair){.certificate = one->file.p, .key = one->key.p, .ocsp = one->ocsp.p};
    }
    for (size_t i = 0; i < out->n; i++)
        out->at[i].kept_by = find_kept(b, out->at[i].certificate);
    return true;
}

/* ---- What is wrong ---- */

static bool is_file(mk_str path, const char *file)
{
    return path.p && file && strcmp(path.p, file) == 0;
}

static const struct mk_certificate *find_certificate(const struct mk_certificates *c, const char *file)
{
    for (size_t i = 0; i < c->n; i++)
        if (is_file(c->at[i].file, file) || is_file(c->at[i].key, file) || is_file(c->at[i].ocsp, file))
            return &c->at[i];
    return NULL;
}

static struct mk_brought *find_brought(const struct mk_site *s, const char *file)
{
    for (struct mk_brought *one = s->brought; one; one = one->next)
        if (file &&
            (strcmp(one->pair.certificate, file) == 0 || (one->pair.key && strcmp(one->pair.key, file) == 0)))
            return one;
    return NULL;
}

/* That of a rule, of which there may be none. */
static struct mk_conf_source_pos place_of_rule(const struct build *b, const struct mk_site *s)
{
    static const char *const keys[] = {"TLSCiphers", "TLSSuites", "TLSGroups", "Certificate"};
    for (size_t i = 0; i < MK_LEN(keys); i++) {
        struct mk_conf_source_pos at = place_of(b, s, keys[i]);
        if (at.line != s->section->at.line)
            return at;
    }
    return s->section->at;
}

static struct mk_conf_source_pos place_of_file(const struct build *b, const struct mk_site *s,
                                               const char *file)
{
    const struct mk_certificate *c = find_certificate(&s->settings.site.tls.certificates, file);
    if (!c)
        c = find_certificate(&fallback_of(s)->settings.site.tls.certificates, file);
    if (c && c->entry)
        return mk_conf_tree_value_pos(c->entry, c->entry->value);
    if (is_file(s->settings.site.tls.client_authority, file))
        return place_of(b, s, "ClientAuthority");
    return place_of_rule(b, s);
}

/* Reports the problem, if there is one: an error, or (fine) a warning. */
static void report(struct build *b, const struct mk_site *s, const struct mk_tls_problem *p, bool fine)
{
    struct mk_conf_source_pos at = place_of_file(b, s, p->file);
    if (!*p->text)
        return;
    if (fine)
        mk_conf_report_warn(b->report, &at, "%s%s%s", p->file ? p->file : "", p->file ? ": " : "", p->text);
    else
        mk_conf_report_error(b->report, &at, "%s%s%s", p->file ? p->file : "", p->file ? ": " : "", p->text);
}

/* The pair that has the file, if it was read: a kept one cannot help itself. */
static const struct mk_tls_pair *find_pair(const struct pairs *pairs, const char *file)
{
    for (size_t i = 0; file && i < pairs->n; i++) {
        const struct mk_tls_pair *p = &pairs->at[i];
        if (!p->kept_by && (strcmp(p->certificate, file) == 0 || (p->key && strcmp(p->key, file) == 0) ||
                            (p->ocsp && strcmp(p->ocsp, file) == 0)))
            return p;
    }
    return NULL;
}

static const struct mk_tls_context *find_previous(const struct build *b, const char *certificate)
{
    const struct mk_made_context *m = b->g->previous ? b->g->previous->contexts : NULL;
    while (m && !(m->context && b->g->tls->context_has(m->context, certificate)))
        m = m->next;
    return m ? m->context : NULL;
}

/* True: the previous generation has loaded this certificate when its files were fine; try again with that. One
 * broken file must not keep the certificates of all other hosts from being renewed. */
static bool keep_previous(struct build *b, const struct mk_site *s, const struct pairs *pairs,
                          const struct mk_tls_problem *p)
{
    const struct mk_tls_pair *pair = find_pair(pairs, p->file);
    const struct mk_tls_context *previous = pair ? find_previous(b, pair->certificate) : NULL;
    struct kept *k = previous ? mk_arena_zalloc(&b->g->arena, 1, sizeof *k) : NULL;
    struct mk_conf_source_pos at = place_of_file(b, s, p->file);
    if (!k)
        return false;
    *k = (struct kept){.next = b->kept, .certificate = pair->certificate, .context = previous};
    b->kept = k;
    mk_conf_report_warn(b->report, &at, "%s: %s; the certificate loaded before stays until the next start",
                        p->file, p->text);
    return true;
}

/* True: the server can do without this file; try again without it. */
static bool forgive(struct build *b, const struct mk_site *s, const struct mk_tls_problem *p)
{
    struct mk_brought *brought = find_brought(s, p->file);
    if (!brought && !has_any(s))
        brought = find_brought(fallback_of(s), p->file);
    if (!brought)
        return false;
    brought->failed = true;
    mk_conf_report_warn(b->report, &brought->entry->at, "%s: %s; it is not used", p->file, p->text);
    return true;
}

void mk_certificates_write_date(int64_t when, char room[MK_CERTIFICATES_DATE])
{
    time_t t = (time_t)when;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(room, MK_CERTIFICATES_DATE, "%Y-%m-%d %H:%M UTC", &tm))
        room[0] = '\0';
}

/* That it has expired was reported with its file. */
static void check_end(struct build *b, const struct mk_site *s, const struct mk_made_context *made)
{
    char date[MK_CERTIFICATES_DATE];
    int64_t left = made->expires - mk_clock_unix();
    if (!made->expires || left <= 0 || left > (int64_t)WARN_DAYS * DAY_S)
        return;
    struct mk_conf_source_pos at = place_of(b, s, "Certificate");
    mk_certificates_write_date(made->expires, date);
    mk_conf_report_warn(b->report, &at, "the certificate ends in %lld day%s, on %s",
                        (long long)(left / DAY_S), left / DAY_S == 1 ? "" : "s", date);
}

/* ---- Contexts ---- */

static struct mk_tls_rules rules_of(const struct build *b, const struct mk_site *s, const struct pairs *pairs)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    return (struct mk_tls_rules){
        .pairs = pairs->at,
        .n_pairs = pairs->n,
        .oldest = t->oldest ? 13 : 12,
        .ciphers = t->ciphers.p,
        .suites = t->suites.p,
        .groups = t->groups.p,
        .clients = (enum mk_tls_clients)t->clients,
        .client_authority = t->clients ? t->client_authority.p : NULL,
        .h2 = t->http2 && b->g->server.site.tls.http2 && b->g->http2,
        .challenges = b->g->tls_challenges.p,
        .tickets = b->g->tickets,
    };
}

static void make(struct build *b, const struct mk_site *s, struct mk_made_context *made)
{
    struct mk_tls_problem problem;
    struct pairs pairs;
    bool again = true;
    while (again && collect(b, s, &pairs) && (pairs.n || b->g->tls_challenges.p)) {
        struct mk_tls_rules rules = rules_of(b, s, &pairs);
        problem = (struct mk_tls_problem){0};
        mk_err e = b->g->tls->context_new(&rules, &made->context, &problem);
        b->report->no_memory |= e == -ENOMEM;
        again = e && e != -ENOMEM && (keep_previous(b, s, &pairs, &problem) || forgive(b, s, &problem));
        made->is_kept = uses_kept(&pairs);
        if (!again)
            report(b, s, &problem, !e);
    }
}

static bool same_text(mk_str a, mk_str b)
{
    return mk_str_eq(a, b);
}

/* True if both would be made from equal settings. */
static bool is_same(const struct mk_site *x, const struct mk_site *y)
{
    const struct mk_tls_settings *p = &x->settings.site.tls, *q = &y->settings.site.tls;
    const struct mk_site *from_x = has_any(x) ? x : fallback_of(x), *from_y = has_any(y) ? y : fallback_of(y);
    bool same_files = from_x == from_y || (!from_x->brought && !from_y->brought &&
                                           from_x->settings.site.tls.certificates.at ==
                                               from_y->settings.site.tls.certificates.at);
    return same_files && p->oldest == q->oldest && same_text(p->ciphers, q->ciphers) &&
           same_text(p->suites, q->suites) && same_text(p->groups, q->groups) && p->clients == q->clients &&
           same_text(p->client_authority, q->client_authority) && p->http2 == q->http2;
}

static const struct mk_made_context *find_made(const struct build *b, const struct mk_site *s)
{
    const struct mk_made_context *m = b->g->contexts;
    while (m && !is_same(m->site, s))
        m = m->next;
    return m;
}

static const struct mk_made_context *make_once(struct build *b, const struct mk_site *s)
{
    const struct mk_made_context *found = find_made(b, s);
    if (found)
        return found;
    struct mk_made_context *made = mk_arena_zalloc(&b->g->arena, 1, sizeof *made);
    if (!made)
        return NULL;
    made->site = s;
    make(b, s, made);
    made->begins = made->context ? b->g->tls->context_begins(made->context) : 0;
    made->expires = made->context ? b->g->tls->context_expires(made->context) : 0;
    check_end(b, s, made);
    made->next = b->g->contexts;
    b->g->contexts = made;
    return made;
}

/* Hosts with equal client-certificate rules have the same number; 0: no rules. */
static unsigned number_of_rules(const struct build *b, const struct mk_site *s)
{
    const struct mk_tls_settings *mine = &s->settings.site.tls;
    unsigned n = 1;
    if (!mine->clients)
        return 0;
    for (const struct mk_site *x = b->g->sites; x != s; x = x->next, n++)
        if (x->settings.site.tls.clients == mine->clients &&
            same_text(x->settings.site.tls.client_authority, mine->client_authority))
            break;
    return n;
}

/* Applies without any TLS listener, too: a host that requires client certificates must not serve plain
 * requests. */
static void set_clients(struct build *b, struct mk_site *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    s->host.client_rules = number_of_rules(b, s);
    s->host.client_required = t->clients == MK_TLS_CLIENTS_REQUIRED;
    for (size_t i = 0; i < b->g->listens.n; i++)
        b->g->listens.at[i].hosts->client_rules |= t->clients != MK_TLS_CLIENTS_OFF;
    struct mk_conf_source_pos at = place_of(b, s, "ClientCertificates");
    if (t->clients && !t->client_authority.p)
        mk_conf_report_error(
            b->report, &at,
            "ClientCertificates needs a ClientAuthority: expected a file with the certificates "
            "of the authorities that issue client certificates");
}

static void build_site(struct build *b, struct mk_site *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    if (t->clients && !t->client_authority.p) /* reported */
        return;
    const struct mk_made_context *made = make_once(b, s);
    if (!made)
        return;
    s->host.tls = made->context;
    s->host.tls_begins = made->begins;
    s->host.tls_expires = made->expires;
    s->host.tls_kept = made->is_kept;
}

static bool is_encrypted(const struct mk_generation *g, const struct mk_site *s)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls && mk_addresses_reach(&g->listens.at[i], s))
            return true;
    return false;
}

static void warn_of_bare(struct build *b)
{
    for (const struct mk_site *s = b->g->sites; s; s = s->next)
        if (!has_any(s) && !s->brought && is_encrypted(b->g, s))
            mk_conf_report_warn(b->report, &s->section->at, "this [HOST] has no Certificate: over TLS it %s",
                                has_any(fallback_of(s)) ? "presents the certificate of the default host"
                                                        : "cannot be reached");
}

/* A Listen that lacks its `tls` would serve in plain text a site that was meant to be encrypted. */
static void warn_of_unused(struct build *b)
{
    for (const struct mk_site *s = b->g->sites; s; s = s->next) {
        struct mk_conf_source_pos at = place_of(b, s, "Certificate");
        bool inherits = first_listen(b->g) && !has_own(b, s);
        if (!s->settings.site.tls.certificates.n || inherits || is_encrypted(b->g, s))
            continue;
        mk_conf_report_warn(b->report, &at, "no Listen has `tls`: this certificate is not used");
        mk_conf_report_hint(b->report, "add `Listen 443 tls`");
        return;
    }
}

static bool can_serve(const struct build *b, const struct mk_listen *l)
{
    for (const struct mk_site *s = b->g->sites; s; s = s->next)
        if (mk_addresses_reach(l, s) && (has_any(s) || s->brought))
            return true;
    return false;
}

/* False: an address has TLS, but none of its hosts has a certificate. */
static bool check_listens(struct build *b)
{
    bool ok = true;
    for (size_t i = 0; i < b->g->listens.n; i++) {
        const struct mk_listen *l = &b->g->listens.at[i];
        if (!l->tls || can_serve(b, l))
            continue;
        ok = false;
        if (b->report->n_errors) /* a host that was to get a certificate may be among them */
            continue;
        mk_conf_report_error(b->report, &l->at,
                             "no [HOST] has a Certificate: TLS connections cannot be served");
        mk_conf_report_hint(b->report, "add `Certificate FILE KEYFILE` to a [HOST], or to [SERVER] for all");
    }
    return ok;
}

/* ---- What hosts tell ---- */

static void set_hsts(struct build *b, struct mk_site *s)
{
    const struct mk_hsts *h = &s->settings.site.tls.hsts;
    if (!h->on)
        return;
    s->host.hsts = mk_arena_printf(&b->g->arena, "max-age=%llu%s%s", (unsigned long long)(h->age_ms / 1000),
                                   h->subdomains ? "; includeSubDomains" : "", h->preload ? "; preload" : "");
}

/* 443 if it is a TLS listener, else the first TLS port; 0: there is none. With a site, only its own addresses
 * count. */
static uint32_t https_port(const struct mk_generation *g, const struct mk_site *s)
{
    uint32_t port = 0;
    for (size_t i = g->listens.n; i-- > 0;) {
        const struct mk_listen *l = &g->listens.at[i];
        uint32_t its = mk_sockaddr_port(&l->addr);
        if (l->tls && its && port != HTTPS_PORT && (!s || mk_addresses_reach(l, s)))
            port = its;
    }
    return port;
}

/* A site without a TLS address: another [HOST] may serve its names over TLS. */
static uint32_t find_https_port(const struct mk_generation *g, const struct mk_site *s)
{
    uint32_t port = https_port(g, s);
    return port ? port : https_port(g, NULL);
}

static void set_redirect(struct build *b, struct mk_site *s)
{
    uint32_t wanted = s->settings.site.tls.redirect;
    uint32_t port = wanted == MK_HTTPS_ON ? find_https_port(b->g, s) : wanted;
    struct mk_conf_source_pos at = place_of(b, s, "RedirectToHTTPS");
    if (wanted && !port) {
        mk_conf_report_error(b->report, &at, "RedirectToHTTPS: no Listen has `tls` on a known port");
        mk_conf_report_hint(b->report, "add `Listen 443 tls`, or name the port: `RedirectToHTTPS 443`");
    }
    s->host.https_port = port;
}

/* ---- As a whole ---- */

static const struct mk_tls_context *choose(void *ctx, mk_str name)
{
    return mk_vhosts_find(ctx, name)->tls;
}

static bool load_module(struct build *b)
{
    const char *why = "";
    const struct mk_listen *l = first_listen(b->g);
    b->g->tls = mk_tls_load(&why);
    if (b->g->tls)
        return true;
    mk_conf_report_error(b->report, &l->at, "`Listen %.*s tls`: this server does not support TLS: %s",
                         MK_CONF_REPORT_ARG(l->written), why);
    mk_conf_report_hint(b->report, "install the package with monkey-tls.so, or build with OpenSSL 3 "
                                   "(libssl-dev)");
    return false;
}

static bool get_tickets(struct build *b)
{
    if (!b->g->server.ticket_ms)
        return true;
    b->g->tickets = mk_tickets_get(b->g->shared);
    b->report->no_memory |= !b->g->tickets;
    return b->g->tickets;
}

/* Errors in the addresses have been reported. */
static bool can_lead(const struct mk_generation *g)
{
    bool ok = g->sites && g->listens.n;
    for (size_t i = 0; i < g->listens.n; i++)
        ok = ok && g->listens.at[i].hosts && g->listens.at[i].hosts->fallback;
    for (const struct mk_site *s = g->sites; s; s = s->next)
        ok = ok && s->hosts;
    return ok;
}

void mk_certificates_build(struct mk_generation *g, struct mk_conf_report *report)
{
    struct build b = {.g = g, .report = report};
    if (!can_lead(g))
        return;
    for (struct mk_site *s = g->sites; s; s = s->next) {
        set_hsts(&b, s);
        set_redirect(&b, s);
        set_clients(&b, s);
    }
    warn_of_unused(&b);
    if (!first_listen(g) || !load_module(&b) || !get_tickets(&b) || !check_listens(&b))
        return;
    for (struct mk_site *s = g->sites; s; s = s->next)
        watch_files(&b, s);
    for (struct mk_site *s = g->sites; s; s = s->next)
        build_site(&b, s);
    warn_of_bare(&b);
    for (size_t i = 0; i < g->listens.n; i++)
        g->listens.at[i].hosts->tls = (struct mk_tls_domain){.choose = choose, .ctx = g->listens.at[i].hosts};
}

/* Clients refuse an expired certificate: an error. One that ends soon is a warning. */
static void remind_of(const struct mk_made_context *m, int64_t now, struct mk_log *log)
{
    char date[MK_CERTIFICATES_DATE];
    const struct mk_vhost *h = &m->site->host;
    mk_str name = h->n_names ? h->names[0] : MK_STR("without a name");
    mk_certificates_write_date(m->expires, date);
    if (m->expires <= now)
        mk_log_error(log, "the certificate of the host %.*s (%s) expired on %s: clients refuse it",
                     MK_STR_ARG(name), h->written_at.p, date);
    else
        mk_log_warn(log, "the certificate of the host %.*s (%s) ends on %s", MK_STR_ARG(name),
                    h->written_at.p, date);
}

void mk_certificates_remind(const struct mk_generation *g, struct mk_log *log)
{
    int64_t now = mk_clock_unix();
    for (const struct mk_made_context *m = g->contexts; m; m = m->next)
        if (m->expires && m->expires - now <= (int64_t)WARN_DAYS * DAY_S)
            remind_of(m, now, log);
}

void mk_certificates_free(struct mk_generation *g)
{
    for (const struct mk_made_context *m = g->contexts; m; m = m->next)
        if (m->context)
            g->tls->context_free(m->context);
    g->contexts = NULL;
}
