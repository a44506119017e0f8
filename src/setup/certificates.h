/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up TLS for a generation: the certificates and rules of its hosts, selected by server name. */
#ifndef MK_SETUP_CERTIFICATES_H
#define MK_SETUP_CERTIFICATES_H

#include "base/log.h"
#include "setup/config_generation_type.h"

/* A TLS context with the settings it was created from: hosts with equal settings share it. */
struct mk_shared_tls_context {
    struct mk_shared_tls_context *next;
    const struct mk_vhost_config *site; /* the first host that uses it */
    struct mk_tls_context *context;
    int64_t begins, expires; /* validity period; 0: the context has no certificate */
    bool is_kept;            /* one of its certificates was kept from the previous generation */
};

/* Call this after mk_https_rules_setup() has returned true and plugins have added their certificates. Errors
 * go to the report. A server without TLS (certificates_none.c) refuses addresses that require it. */
void mk_certificates_setup_tls(struct mk_config_generation *g, struct mk_conf_report *report);
void mk_certificates_free(struct mk_config_generation *g);
/* Logs certificates that have expired or expire soon. */
void mk_certificates_warn_expiring(const struct mk_config_generation *g, struct mk_log *log);

#endif
