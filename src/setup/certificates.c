/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/certificates.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "setup/https_rules.h"
#include "setup/listen_addresses.h"

enum { WARN_DAYS = 14, DAY_S = 86400 };

/* A certificate whose files are invalid: the certificate of the previous generation stays in use. */
struct kept_certificate {
    struct kept_certificate *next;
    const char *certificate;
    const struct mk_tls_context *context;
};

struct tls_builder {
    struct mk_config_generation *g;
    struct mk_conf_report *report;
    struct kept_certificate *kept_certificate;
};

static const struct mk_listen *first_tls_listen(const struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls)
            return &g->listens.at[i];
    return NULL;
}

/* Returns the default host of the first address of this host. */
static const struct mk_vhost_config *default_host_of(const struct mk_vhost_config *s)
{
    return s->hosts->fallback->source;
}

/* ---- Certificate files ---- */

static bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool is_in_memory(const struct mk_plugin_certificate *b)
{
    return b->pair.kept_by;
}

static bool is_plugin_pair_usable(const struct mk_plugin_certificate *b)
{
    if (is_in_memory(b))
        return true;
    return !b->failed && file_exists(b->pair.certificate) && (!b->pair.key || file_exists(b->pair.key));
}

static bool has_own_certificates(const struct tls_builder *b, const struct mk_vhost_config *s)
{
    const struct mk_certificates *c = &s->settings.site.tls.certificates;
    return c->n && c->at != b->g->server.site.tls.certificates.at;
}

static bool has_plugin_certificate(const struct mk_vhost_config *s)
{
    for (const struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
        if (is_plugin_pair_usable(one))
            return true;
    return false;
}

static bool has_any_certificate(const struct mk_vhost_config *s)
{
    return s->settings.site.tls.certificates.n || has_plugin_certificate(s);
}

static void watch_file(struct tls_builder *b, const char *path)
{
    if (path)
        (void)!mk_file_watch_add(&b->g->watched, &b->g->arena, path);
}

/* Call this before the files are read, so that no change after the read is missed. */
static void watch_host_files(struct tls_builder *b, const struct mk_vhost_config *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    for (size_t i = 0; i < t->certificates.n; i++) {
        watch_file(b, t->certificates.at[i].file.p);
        watch_file(b, t->certificates.at[i].key.p);
        watch_file(b, t->certificates.at[i].ocsp.p);
    }
    for (const struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
        if (!is_in_memory(one)) {
            watch_file(b, one->pair.certificate);
            watch_file(b, one->pair.key);
        }
    watch_file(b, t->client_authority.p);
}

struct pairs {
    struct mk_tls_keypair *at;
    size_t n;
};

static const struct mk_tls_context *find_kept_context(const struct tls_builder *b, const char *certificate)
{
    const struct kept_certificate *k = b->kept_certificate;
    while (k && strcmp(k->certificate, certificate) != 0)
        k = k->next;
    return k ? k->context : NULL;
}

static bool uses_kept_context(const struct tls_builder *b, const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        if (find_kept_context(b, pairs->at[i].certificate))
            return true;
    return false;
}

/* Collects the certificates of the host itself and of plugins, or else the inherited certificates. A host
 * without a certificate uses the certificate of the default host. */
static bool collect_keypairs(struct tls_builder *b, const struct mk_vhost_config *s, struct pairs *out)
{
    const struct mk_vhost_config *from = has_any_certificate(s) ? s : default_host_of(s);
    const struct mk_certificates *c = &from->settings.site.tls.certificates;
    size_t n = c->n;
    for (const struct mk_plugin_certificate *one = from->plugin_certificates; one; one = one->next)
        n++;
    *out = (struct pairs){.at = mk_arena_zalloc(&b->g->arena, n ? n : 1, sizeof *out->at)};
    if (!out->at)
        return false;
    for (const struct mk_plugin_certificate *one = from->plugin_certificates; one; one = one->next)
        if (is_plugin_pair_usable(one))
            out->at[out->n++] = one->pair;
    bool wants_written = !out->n || has_own_certificates(b, from);
    for (size_t i = 0; i < c->n && wants_written; i++) {
        const struct mk_certificate *one = &c->at[i];
        out->at[out->n++] =
            (struct mk_tls_keypair){.certificate = one->file.p, .key = one->key.p, .ocsp = one->ocsp.p};
    }
    for (size_t i = 0; i < out->n; i++)
        if (!out->at[i].kept_by)
            out->at[i].kept_by = find_kept_context(b, out->at[i].certificate);
    return true;
}

/* ---- Errors ---- */

static bool is_same_path(mk_str path, const char *file)
{
    return path.p && file && strcmp(path.p, file) == 0;
}

static const struct mk_certificate *find_certificate_by_file(const struct mk_certificates *c,
                                                             const char *file)
{
    for (size_t i = 0; i < c->n; i++)
        if (is_same_path(c->at[i].file, file) || is_same_path(c->at[i].key, file) ||
            is_same_path(c->at[i].ocsp, file))
            return &c->at[i];
    return NULL;
}

static struct mk_plugin_certificate *find_plugin_certificate(const struct mk_vhost_config *s,
                                                             const char *file)
{
    for (struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
        if (file && !is_in_memory(one) &&
            (strcmp(one->pair.certificate, file) == 0 || (one->pair.key && strcmp(one->pair.key, file) == 0)))
            return one;
    return NULL;
}

/* Returns the position of the first of these TLS keys that is set, or else of the host's section. */
static struct mk_conf_source_pos tls_policy_pos(const struct tls_builder *b, const struct mk_vhost_config *s)
{
    static const char *const keys[] = {"TLSCiphers", "TLSSuites", "TLSGroups", "Certificate"};
    for (size_t i = 0; i < MK_LEN(keys); i++) {
        struct mk_conf_source_pos at = mk_https_rules_key_pos(b->g, s, keys[i]);
        if (at.line != s->section->at.line)
            return at;
    }
    return s->section->at;
}

static struct mk_conf_source_pos tls_file_pos(const struct tls_builder *b, const struct mk_vhost_config *s,
                                              const char *file)
{
    const struct mk_certificate *c = find_certificate_by_file(&s->settings.site.tls.certificates, file);
    if (!c)
        c = find_certificate_by_file(&default_host_of(s)->settings.site.tls.certificates, file);
    if (c && c->entry)
        return mk_conf_tree_value_pos(c->entry, c->entry->value);
    if (is_same_path(s->settings.site.tls.client_authority, file))
        return mk_https_rules_key_pos(b->g, s, "ClientAuthority");
    return tls_policy_pos(b, s);
}

/* Reports the problem, if any: as a warning if the context is usable, else as an error. */
static void report_tls_error(struct tls_builder *b, const struct mk_vhost_config *s,
                             const struct mk_tls_settings_error *p, bool is_usable)
{
    struct mk_conf_source_pos at = tls_file_pos(b, s, p->file);
    if (!*p->text)
        return;
    if (is_usable)
        mk_conf_report_warn(b->report, &at, "%s%s%s", p->file ? p->file : "", p->file ? ": " : "", p->text);
    else
        mk_conf_report_error(b->report, &at, "%s%s%s", p->file ? p->file : "", p->file ? ": " : "", p->text);
}

/* Returns the pair that contains the file, unless the pair was kept from the previous generation; NULL:
 * none. */
static const struct mk_tls_keypair *find_newly_read_keypair(const struct pairs *pairs, const char *file)
{
    for (size_t i = 0; file && i < pairs->n; i++) {
        const struct mk_tls_keypair *p = &pairs->at[i];
        if (!p->kept_by && (strcmp(p->certificate, file) == 0 || (p->key && strcmp(p->key, file) == 0) ||
                            (p->ocsp && strcmp(p->ocsp, file) == 0)))
            return p;
    }
    return NULL;
}

static const struct mk_tls_context *find_previous_context(const struct tls_builder *b,
                                                          const char *certificate)
{
    const struct mk_shared_tls_context *m = b->g->previous ? b->g->previous->contexts : NULL;
    while (m && !(m->context && b->g->tls->context_has(m->context, certificate)))
        m = m->next;
    return m ? m->context : NULL;
}

/* Keeps the certificate that the previous generation loaded. True: try again with that certificate. One
 * invalid file must not prevent renewal of the certificates of all other hosts. */
static bool keep_previous_certificate(struct tls_builder *b, const struct mk_vhost_config *s,
                                      const struct pairs *pairs, const struct mk_tls_settings_error *p)
{
    const struct mk_tls_keypair *pair = find_newly_read_keypair(pairs, p->file);
    const struct mk_tls_context *previous = pair ? find_previous_context(b, pair->certificate) : NULL;
    struct kept_certificate *k = previous ? mk_arena_zalloc(&b->g->arena, 1, sizeof *k) : NULL;
    struct mk_conf_source_pos at = tls_file_pos(b, s, p->file);
    if (!k)
        return false;
    *k = (struct kept_certificate){
        .next = b->kept_certificate, .certificate = pair->certificate, .context = previous};
    b->kept_certificate = k;
    mk_conf_report_warn(
        b->report, &at,
        "%s: %s; the server keeps using the certificate loaded previously until it is restarted", p->file,
        p->text);
    return true;
}

/* Skips an invalid certificate that a plugin added, which the server can do without. True: try again without
 * the certificate. */
static bool skip_plugin_certificate(struct tls_builder *b, const struct mk_vhost_config *s,
                                    const struct mk_tls_settings_error *p)
{
    struct mk_plugin_certificate *certificate = find_plugin_certificate(s, p->file);
    if (!certificate && !has_any_certificate(s))
        certificate = find_plugin_certificate(default_host_of(s), p->file);
    if (!certificate)
        return false;
    certificate->failed = true;
    mk_conf_report_warn(b->report, &certificate->entry->at, "%s: %s; the certificate is not used", p->file,
                        p->text);
    return true;
}

/* Warns of a certificate that expires soon. An expired certificate was already reported when its file was
 * read. */
static void warn_of_expiry(struct tls_builder *b, const struct mk_vhost_config *s,
                           const struct mk_shared_tls_context *made)
{
    char date[MK_HTTPS_RULES_DATE];
    int64_t left = made->expires - mk_clock_unix();
    if (!made->expires || left <= 0 || left > (int64_t)WARN_DAYS * DAY_S)
        return;
    struct mk_conf_source_pos at = mk_https_rules_key_pos(b->g, s, "Certificate");
    mk_https_rules_format_date(made->expires, date);
    mk_conf_report_warn(b->report, &at, "the certificate expires in %lld day%s, on %s",
                        (long long)(left / DAY_S), left / DAY_S == 1 ? "" : "s", date);
}

/* ---- Contexts ---- */

static struct mk_tls_server_settings
make_tls_rules(const struct tls_builder *b, const struct mk_vhost_config *s, const struct pairs *pairs)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    return (struct mk_tls_server_settings){
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
        .on_demand = s->on_demand,
        .tickets = b->g->tickets,
    };
}

static void make_tls_context(struct tls_builder *b, const struct mk_vhost_config *s,
                             struct mk_shared_tls_context *made)
{
    struct mk_tls_settings_error problem;
    struct pairs pairs;
    bool again = true;
    while (again && collect_keypairs(b, s, &pairs) && (pairs.n || b->g->tls_challenges.p || s->on_demand)) {
        struct mk_tls_server_settings rules = make_tls_rules(b, s, &pairs);
        problem = (struct mk_tls_settings_error){0};
        mk_err e = b->g->tls->context_new(&rules, &made->context, &problem);
        b->report->no_memory |= e == -ENOMEM;
        again =
            e && e != -ENOMEM &&
            (keep_previous_certificate(b, s, &pairs, &problem) || skip_plugin_certificate(b, s, &problem));
        made->is_kept = uses_kept_context(b, &pairs);
        if (!again)
            report_tls_error(b, s, &problem, !e);
    }
}

static bool equal_text(mk_str a, mk_str b)
{
    return mk_str_eq(a, b);
}

/* Do both lists hold the same in-memory certificates, or do both hold none? */
static bool has_same_plugin_certificates(const struct mk_plugin_certificate *p,
                                         const struct mk_plugin_certificate *q)
{
    while (p && q && is_in_memory(p) && p->pair.kept_by == q->pair.kept_by) {
        p = p->next;
        q = q->next;
    }
    return !p && !q;
}

/* Do both hosts have equal TLS settings? */
static bool has_same_tls_settings(const struct mk_vhost_config *x, const struct mk_vhost_config *y)
{
    const struct mk_tls_settings *p = &x->settings.site.tls, *q = &y->settings.site.tls;
    const struct mk_vhost_config *from_x = has_any_certificate(x) ? x : default_host_of(x),
                                 *from_y = has_any_certificate(y) ? y : default_host_of(y);
    bool same_files =
        from_x == from_y ||
        (has_same_plugin_certificates(from_x->plugin_certificates, from_y->plugin_certificates) &&
         from_x->settings.site.tls.certificates.at == from_y->settings.site.tls.certificates.at);
    return same_files && x->on_demand == y->on_demand && p->oldest == q->oldest &&
           equal_text(p->ciphers, q->ciphers) && equal_text(p->suites, q->suites) &&
           equal_text(p->groups, q->groups) && p->clients == q->clients &&
           equal_text(p->client_authority, q->client_authority) && p->http2 == q->http2;
}

static const struct mk_shared_tls_context *find_shared_context(const struct tls_builder *b,
                                                               const struct mk_vhost_config *s)
{
    const struct mk_shared_tls_context *m = b->g->contexts;
    while (m && !has_same_tls_settings(m->site, s))
        m = m->next;
    return m;
}

static const struct mk_shared_tls_context *get_or_make_context(struct tls_builder *b,
                                                               const struct mk_vhost_config *s)
{
    const struct mk_shared_tls_context *found = find_shared_context(b, s);
    if (found)
        return found;
    struct mk_shared_tls_context *made = mk_arena_zalloc(&b->g->arena, 1, sizeof *made);
    if (!made)
        return NULL;
    made->site = s;
    make_tls_context(b, s, made);
    made->begins = made->context ? b->g->tls->context_begins(made->context) : 0;
    made->expires = made->context ? b->g->tls->context_expires(made->context) : 0;
    warn_of_expiry(b, s, made);
    made->next = b->g->contexts;
    b->g->contexts = made;
    return made;
}

static void set_host_context(struct tls_builder *b, struct mk_vhost_config *s)
{
    const struct mk_tls_settings *t = &s->settings.site.tls;
    if (t->clients && !t->client_authority.p) /* already reported */
        return;
    const struct mk_shared_tls_context *made = get_or_make_context(b, s);
    if (!made)
        return;
    s->host.tls = made->context;
    s->host.tls_begins = made->begins;
    s->host.tls_expires = made->expires;
    s->host.tls_kept = made->is_kept;
}

static bool is_served_over_tls(const struct mk_config_generation *g, const struct mk_vhost_config *s)
{
    for (size_t i = 0; i < g->listens.n; i++)
        if (g->listens.at[i].tls && mk_listen_addresses_serves(&g->listens.at[i], s))
            return true;
    return false;
}

static void warn_of_uncertified_hosts(struct tls_builder *b)
{
    for (const struct mk_vhost_config *s = b->g->sites; s; s = s->next)
        if (!has_any_certificate(s) && !s->plugin_certificates && !s->on_demand &&
            is_served_over_tls(b->g, s))
            mk_conf_report_warn(b->report, &s->section->at, "this [HOST] has no Certificate: over TLS it %s",
                                has_any_certificate(default_host_of(s))
                                    ? "presents the certificate of the default host"
                                    : "cannot be reached");
}

static bool has_certificate_to_use(const struct mk_vhost_config *s)
{
    return s->settings.site.tls.certificates.n ||
           (s->plugin_certificates && is_in_memory(s->plugin_certificates));
}

/* Warns of a certificate that no TLS listener uses: a Listen that lacks the `tls` flag would serve a host
 * meant for TLS in plain text. */
static void warn_of_unused_certificate(struct tls_builder *b)
{
    for (const struct mk_vhost_config *s = b->g->sites; s; s = s->next) {
        struct mk_conf_source_pos at = mk_https_rules_key_pos(b->g, s, "Certificate");
        bool inherits = first_tls_listen(b->g) && !has_own_certificates(b, s);
        if (!has_certificate_to_use(s) || inherits || is_served_over_tls(b->g, s))
            continue;
        mk_conf_report_warn(b->report, &at, "no Listen has `tls`: this certificate is not used");
        mk_conf_report_hint(b->report, "add `Listen 443 tls`");
        return;
    }
}

static bool can_serve_tls(const struct tls_builder *b, const struct mk_listen *l)
{
    for (const struct mk_vhost_config *s = b->g->sites; s; s = s->next)
        if (mk_listen_addresses_serves(l, s) &&
            (has_any_certificate(s) || s->plugin_certificates || s->on_demand))
            return true;
    return false;
}

/* Checks that each TLS address has a host with a certificate. False: an address has none. */
static bool check_tls_listens(struct tls_builder *b)
{
    bool ok = true;
    for (size_t i = 0; i < b->g->listens.n; i++) {
        const struct mk_listen *l = &b->g->listens.at[i];
        if (!l->tls || can_serve_tls(b, l))
            continue;
        ok = false;
        if (b->report->n_errors) /* the host with the certificate may be invalid */
            continue;
        mk_conf_report_error(b->report, &l->at,
                             "no [HOST] has a Certificate: TLS connections cannot be served");
        mk_conf_report_hint(b->report, "add `Certificate FILE KEYFILE` to a [HOST], or to [SERVER] for all");
    }
    return ok;
}

/* ---- All hosts ---- */

static const struct mk_tls_context *choose_host_context(void *ctx, mk_str name)
{
    return __atomic_load_n(&mk_vhosts_find(ctx, name)->tls, __ATOMIC_ACQUIRE);
}

static bool load_tls_module(struct tls_builder *b)
{
    const char *error = "";
    const struct mk_listen *l = first_tls_listen(b->g);
    b->g->tls = mk_tls_load(&error);
    if (b->g->tls)
        return true;
    mk_conf_report_error(b->report, &l->at, "`Listen %.*s tls`: this server does not support TLS: %s",
                         MK_CONF_REPORT_ARG(l->written), error);
    mk_conf_report_hint(b->report, "install the package with monkey-tls.so, or build with OpenSSL 3 "
                                   "(libssl-dev)");
    return false;
}

static bool get_ticket_keys(struct tls_builder *b)
{
    if (!b->g->server.ticket_ms)
        return true;
    b->g->tickets = mk_tls_ticket_keys_get(b->g->shared);
    b->report->no_memory |= !b->g->tickets;
    return b->g->tickets;
}

/* May the embedding program add a TLS listener while the server is running? */
static bool may_listen_later(const struct mk_config_generation *g)
{
    const struct mk_vhost_config *s = g->embedding ? g->sites : NULL;
    while (s && !(s->plugin_certificates && is_in_memory(s->plugin_certificates)))
        s = s->next;
    return s && !g->embedding->listens_nowhere;
}

void mk_certificates_setup_tls(struct mk_config_generation *g, struct mk_conf_report *report)
{
    struct tls_builder b = {.g = g, .report = report};
    warn_of_unused_certificate(&b);
    if (!(first_tls_listen(g) || may_listen_later(g)) || !load_tls_module(&b) || !get_ticket_keys(&b) ||
        !check_tls_listens(&b))
        return;
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        watch_host_files(&b, s);
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        set_host_context(&b, s);
    warn_of_uncertified_hosts(&b);
    g->hosts.tls = (struct mk_tls_domain){.choose = choose_host_context, .ctx = &g->hosts};
    for (size_t i = 0; i < g->listens.n; i++)
        g->listens.at[i].hosts->tls =
            (struct mk_tls_domain){.choose = choose_host_context, .ctx = g->listens.at[i].hosts};
}

/* ---- Replacing ---- */

static bool uses_context(const struct mk_vhost_config *s, const struct mk_shared_tls_context *m)
{
    return m->context && s->host.tls == m->context;
}

/* Does the host have this name? True if the name is absent. A wildcard pattern in `name` is compared with the
 * host's patterns as written. */
static bool is_named(const struct mk_vhost_config *s, mk_str name)
{
    bool found = !name.p || mk_vhost_has_name(&s->host, name);
    for (size_t i = 0; i < s->host.n_names && !found; i++)
        found = mk_str_eq_nocase(s->host.names[i], name);
    return found;
}

/* If `has_name`: does any host with that name use the context? Otherwise: does any other host use it? */
static bool is_used_by(const struct mk_config_generation *g, const struct mk_shared_tls_context *m,
                       mk_str name, bool has_name)
{
    const struct mk_vhost_config *s = g->sites;
    while (s && !(uses_context(s, m) && is_named(s, name) == has_name))
        s = s->next;
    return s;
}

static mk_err renew_context(struct tls_builder *b, struct mk_shared_tls_context *m,
                            const struct mk_tls_keypair *pair, struct mk_tls_settings_error *problem)
{
    const struct pairs pairs = {.at = (struct mk_tls_keypair[]){*pair}, .n = 1};
    struct mk_tls_server_settings rules = make_tls_rules(b, m->site, &pairs);
    rules.base = m->context;
    return b->g->tls->context_new(&rules, &m->renewed, problem);
}

static void discard_renewed_contexts(struct mk_config_generation *g)
{
    for (struct mk_shared_tls_context *m = g->contexts; m; m = m->next) {
        g->tls->context_free(m->renewed);
        m->renewed = NULL;
    }
}

/* A context may also serve hosts without this name, which keep it. The renewed context, which is only for
 * hosts with this name, then moves to an entry of its own. */
static mk_err split_shared_contexts(struct mk_config_generation *g, mk_str name)
{
    struct mk_shared_tls_context *first = g->contexts;
    for (struct mk_shared_tls_context *m = first; m; m = m->next) {
        if (!m->renewed || !is_used_by(g, m, name, false))
            continue;
        struct mk_shared_tls_context *own = mk_arena_zalloc(&g->arena, 1, sizeof *own);
        if (!own)
            return -ENOMEM;
        *own = (struct mk_shared_tls_context){
            .next = g->contexts, .site = m->site, .renewed = m->renewed, .split_from = m};
        m->renewed = NULL;
        g->contexts = own;
    }
    return 0;
}

/* Other threads may read these members: see choose_host_context() and mk_host_certificate(). */
static void set_renewed_context(struct mk_vhost_config *s, const struct mk_shared_tls_context *m)
{
    __atomic_store_n(&s->host.tls_begins, m->begins, __ATOMIC_RELAXED);
    __atomic_store_n(&s->host.tls_expires, m->expires, __ATOMIC_RELAXED);
    __atomic_store_n(&s->host.tls_kept, false, __ATOMIC_RELAXED);
    __atomic_store_n(&s->host.tls, m->renewed, __ATOMIC_RELEASE);
}

static struct mk_tls_context *activate_renewed_context(struct mk_config_generation *g,
                                                       struct mk_shared_tls_context *m, mk_str name)
{
    const struct mk_shared_tls_context *from = m->split_from ? m->split_from : m;
    struct mk_tls_context *old = m->context;
    m->begins = g->tls->context_begins(m->renewed);
    m->expires = g->tls->context_expires(m->renewed);
    for (struct mk_vhost_config *s = g->sites; s; s = s->next)
        if (uses_context(s, from) && is_named(s, name)) {
            m->site = s;
            set_renewed_context(s, m);
        }
    m->context = m->renewed;
    m->renewed = NULL;
    m->split_from = NULL;
    m->is_kept = false;
    return old;
}

size_t mk_certificates_count_contexts(const struct mk_config_generation *g)
{
    size_t n = 0;
    for (const struct mk_shared_tls_context *m = g->contexts; m; m = m->next)
        n++;
    return n;
}

mk_err mk_certificates_replace(struct mk_config_generation *g, mk_str name, const struct mk_tls_keypair *pair,
                               struct mk_tls_context **old, struct mk_tls_settings_error *problem)
{
    struct tls_builder b = {.g = g};
    bool found = false;
    mk_err e = 0;
    for (struct mk_shared_tls_context *m = g->contexts; m && !e; m = m->next)
        if (is_used_by(g, m, name, true)) {
            found = true;
            e = renew_context(&b, m, pair, problem);
        }
    if (!e)
        e = found ? split_shared_contexts(g, name) : -ENOENT;
    if (e) {
        discard_renewed_contexts(g);
        return e;
    }
    for (struct mk_shared_tls_context *m = g->contexts; m; m = m->next)
        if (m->renewed)
            *old++ = activate_renewed_context(g, m, name);
    return 0;
}

/* Logs an error for an expired certificate, which clients reject, and a warning for a certificate that
 * expires soon. */
static void log_certificate_expiry(const struct mk_shared_tls_context *m, int64_t now, struct mk_log *log)
{
    char date[MK_HTTPS_RULES_DATE];
    const struct mk_vhost *h = &m->site->host;
    mk_str name = h->n_names ? h->names[0] : MK_STR("without a name");
    mk_https_rules_format_date(m->expires, date);
    if (m->expires <= now)
        mk_log_error(log, "the certificate of the host %.*s (%s) expired on %s: clients reject it",
                     MK_STR_ARG(name), h->written_at.p, date);
    else
        mk_log_warn(log, "the certificate of the host %.*s (%s) expires on %s", MK_STR_ARG(name),
                    h->written_at.p, date);
}

void mk_certificates_warn_expiring(const struct mk_config_generation *g, struct mk_log *log)
{
    int64_t now = mk_clock_unix();
    for (const struct mk_shared_tls_context *m = g->contexts; m; m = m->next)
        if (m->expires && m->expires - now <= (int64_t)WARN_DAYS * DAY_S)
            log_certificate_expiry(m, now, log);
}

void mk_certificates_free(struct mk_config_generation *g)
{
    for (const struct mk_shared_tls_context *m = g->contexts; m; m = m->next)
        if (m->context)
            g->tls->context_free(m->context);
    g->contexts = NULL;
}
