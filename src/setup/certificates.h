/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up TLS for a generation: creates the TLS contexts of its hosts, and selects the context of a
 * connection by server name (SNI). */
#ifndef MK_SETUP_CERTIFICATES_H
#define MK_SETUP_CERTIFICATES_H

#include "base/log.h"
#include "setup/config_generation_type.h"

/* A TLS context, shared by all hosts with equal TLS settings. */
struct mk_shared_tls_context {
    struct mk_shared_tls_context *next;
    const struct mk_vhost_config *site; /* the first host that uses it */
    struct mk_tls_context *context;
    int64_t begins, expires; /* validity period; 0: the context has no certificate */
    bool is_kept;            /* one of its certificates was kept from the previous generation */
    /* During mk_certificates_replace(): the new context, and the entry whose hosts will use it (NULL: this
     * entry). */
    struct mk_tls_context *renewed;
    const struct mk_shared_tls_context *split_from;
};

/* Call this after mk_https_rules_setup() has returned true and plugins have added their certificates. Errors
 * go to the report. A server without TLS (certificates_none.c) reports addresses that require TLS as
 * errors. */
void mk_certificates_setup_tls(struct mk_config_generation *g, struct mk_conf_report *report);
void mk_certificates_free(struct mk_config_generation *g);

/* Returns the number of entries in g->contexts. */
size_t mk_certificates_count_contexts(const struct mk_config_generation *g);
/* Replaces, in the hosts with that name (absent: all hosts that have a certificate), the certificate with the
 * same key type. If a host has none with this key type, adds the certificate. Other threads may serve the
 * hosts meanwhile. Stores the replaced contexts in old[], at most mk_certificates_count_contexts() of them:
 * free them when no handshake uses them any longer. On error, nothing changes; *problem explains -EINVAL.
 * -ENOENT: no such host has a certificate. */
mk_err mk_certificates_replace(struct mk_config_generation *g, mk_str name, const struct mk_tls_keypair *pair,
                               struct mk_tls_context **old,
                               struct mk_tls_settings_error *problem) MK_MUST_USE;
/* Logs certificates that have expired or expire soon. */
void mk_certificates_warn_expiring(const struct mk_config_generation *g, struct mk_log *log);

#endif
