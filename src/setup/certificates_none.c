/* SPDX-License-Identifier: Apache-2.0 */
/* A server without TLS: addresses that require TLS are errors, and certificates have no effect. */
#include "setup/certificates.h"

void mk_certificates_setup_tls(struct mk_config_generation *g, struct mk_conf_report *report)
{
    const char *error = "";
    (void)mk_tls_load(&error);
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        if (s->settings.site.tls.certificates.n)
            mk_conf_report_warn(report, &s->section->at, "the Certificate of this [HOST] is not used: %s",
                                error);
    for (size_t i = 0; i < g->listens.n; i++) {
        const struct mk_listen *l = &g->listens.at[i];
        if (!l->tls)
            continue;
        mk_conf_report_error(report, &l->at, "`Listen %.*s tls`: this server does not support TLS: %s",
                             MK_CONF_REPORT_ARG(l->written), error);
        mk_conf_report_hint(report, "build with OpenSSL 3 (libssl-dev)");
        return;
    }
}

void mk_certificates_warn_expiring(const struct mk_config_generation *g, struct mk_log *log)
{
    (void)g, (void)log;
}

size_t mk_certificates_count_contexts(const struct mk_config_generation *g)
{
    (void)g;
    return 0;
}

mk_err mk_certificates_replace(struct mk_config_generation *g, mk_str name, const struct mk_tls_keypair *pair,
                               struct mk_tls_context **old, struct mk_tls_settings_error *problem)
{
    (void)g, (void)name, (void)pair, (void)old, (void)problem;
    return -ENOTSUP;
}

void mk_certificates_free(struct mk_config_generation *g)
{
    (void)g;
}
