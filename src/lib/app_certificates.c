/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/app_certificates.h"

#include <monkey/tls.h>

#include "base/mem.h"
#include "event/tls.h"
#include "setup/config.h"

#define CERTIFICATE_NAME "the PEM text of the certificate"
#define KEY_NAME         "the PEM text of the key"

/* A separate context holds the parsed certificate and key, so that the strings need not be kept: OpenSSL
 * erases the key when the context is freed. */
struct mk_app_certificate {
    struct mk_app_certificate *next;
    unsigned host; /* 0: all */
    const struct mk_tls_module *tls;
    struct mk_tls_context *context;
};

/* ---- Adding ---- */

struct mk_tls_keypair mk_app_certificate_pair(const char *certificate, const char *key)
{
    return (struct mk_tls_keypair){.certificate = CERTIFICATE_NAME,
                                   .key = key ? KEY_NAME : NULL,
                                   .certificate_text = certificate,
                                   .key_text = key};
}

static mk_err parse_pair(struct mk_app_certificate *one, const char *certificate, const char *key,
                         struct mk_buf *error)
{
    const struct mk_tls_keypair pair = mk_app_certificate_pair(certificate, key);
    const struct mk_tls_server_settings rules = {.pairs = &pair, .n_pairs = 1, .oldest = 12};
    struct mk_tls_settings_error problem;
    mk_err e = one->tls->context_new(&rules, &one->context, &problem);
    if (e && e != -ENOMEM)
        mk_buf_addf(error, "%s%s%s", problem.file ? problem.file : "", problem.file ? ": " : "",
                    problem.text);
    return e;
}

mk_err mk_app_certificates_add(struct mk_app_certificates *p, unsigned host, const char *certificate,
                               const char *key, struct mk_buf *error)
{
    const char *reason = "";
    const struct mk_tls_module *tls = mk_tls_load(&reason);
    if (!tls) {
        mk_buf_addf(error, "this library does not support TLS: %s", reason);
        return -ENOTSUP;
    }
    struct mk_app_certificate *one = mk_mem_zalloc(1, sizeof *one);
    if (!one)
        return -ENOMEM;
    *one = (struct mk_app_certificate){.next = p->first, .host = host, .tls = tls};
    mk_err e = parse_pair(one, certificate, key, error);
    if (e)
        mk_mem_free(one);
    else
        p->first = one;
    return e;
}

void mk_app_certificates_free(struct mk_app_certificates *p)
{
    while (p->first) {
        struct mk_app_certificate *one = p->first;
        p->first = one->next;
        one->tls->context_free(one->context);
        mk_mem_free(one);
    }
}

/* ---- Use ---- */

static bool add_to_host(struct mk_config *c, const struct mk_app_certificate *one)
{
    struct mk_plugin_certificate *b = mk_config_alloc(c, sizeof *b);
    if (!b)
        return false;
    *b = (struct mk_plugin_certificate){.next = c->site->plugin_certificates,
                                        .pair = {.certificate = CERTIFICATE_NAME, .kept_by = one->context}};
    c->site->plugin_certificates = b;
    return true;
}

static bool has_certificate_for(const struct mk_app_certificates *p, unsigned host)
{
    const struct mk_app_certificate *one = p->first;
    while (one && one->host != host)
        one = one->next;
    return one;
}

bool mk_app_certificates_use(const struct mk_app_certificates *p, struct mk_config *c, unsigned host)
{
    bool has_own = host && has_certificate_for(p, host);
    bool ok = true;
    if (!has_own && mk_config_has_certificate(c))
        return true;
    for (const struct mk_app_certificate *one = p->first; one && ok; one = one->next)
        if (one->host == (has_own ? host : 0))
            ok = add_to_host(c, one);
    return ok;
}
