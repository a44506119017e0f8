/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/client.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "tls/connect_error.h"
#include "tls/keypair.h"
#include "tls/loaded_keypair.h"
#include "tls/session.h"
#include "tls/trust_store.h"

/* No kernel TLS: requests are small. */
#define OPTIONS (SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF)

#define PROTOCOLS                                                                                            \
    "\x08"                                                                                                   \
    "http/1.1"

static SSL_CTX *new_client_ctx(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        return NULL;
    (void)SSL_CTX_set_options(ctx, OPTIONS);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, mk_tls_session_new_cb);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_cert_cb(ctx, mk_tls_connect_error_cert_cb, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)PROTOCOLS, sizeof PROTOCOLS - 1) == 0)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

static mk_err set_trusted_authorities(struct mk_tls_client *c, const struct mk_tls_client_settings *r,
                                      struct mk_tls_settings_error *problem)
{
    if (!r->verifies)
        return 0;
    c->anchors = mk_tls_trust_store_acquire(r->authority, problem);
    if (!c->anchors)
        return -EINVAL;
    SSL_CTX_set1_cert_store(c->ctx, c->anchors);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, mk_tls_connect_error_verify_cb);
    X509_VERIFY_PARAM_set_hostflags(SSL_CTX_get0_param(c->ctx), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return 0;
}

/* Loads the client certificate in the same way as a host's certificate; only the SSL_CTX of the context is
 * needed. */
static mk_err set_client_certificate(struct mk_tls_client *c, const struct mk_tls_client_settings *r,
                                     struct mk_tls_settings_error *problem)
{
    struct mk_tls_keypair pair = {.certificate = r->certificate, .key = r->key};
    struct mk_tls_context context = {.ctx = c->ctx};
    if (r->certificate) {
        mk_err e = mk_tls_keypair_load(&context, &pair, problem);
        mk_tls_loaded_keypair_free_all(&context);
        return e;
    }
    return r->key ? mk_tls_settings_error_set(
                        problem, r->key, "there is a key without a certificate: expected both or neither")
                  : 0;
}

static mk_err init_client(struct mk_tls_client *c, const struct mk_tls_client_settings *r,
                          struct mk_tls_settings_error *problem)
{
    static uint64_t last;
    c->number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    c->ctx = new_client_ctx();
    if (!c->ctx)
        return mk_tls_settings_error_set_openssl(problem, NULL, "OpenSSL does not work");
    mk_err e = set_trusted_authorities(c, r, problem);
    return e ? e : set_client_certificate(c, r, problem);
}

mk_err mk_tls_client_new(const struct mk_tls_client_settings *rules, struct mk_tls_client **out,
                         struct mk_tls_settings_error *problem)
{
    *problem = (struct mk_tls_settings_error){0};
    ERR_clear_error();
    struct mk_tls_client *c = mk_mem_zalloc(1, sizeof *c);
    mk_err e = c ? init_client(c, rules, problem) : -ENOMEM;
    if (e && !*problem->text)
        (void)mk_tls_settings_error_set_openssl(problem, NULL, "OpenSSL failed");
    if (e) {
        mk_tls_client_free(c);
        return e;
    }
    *out = c;
    return 0;
}

void mk_tls_client_free(struct mk_tls_client *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    mk_tls_trust_store_release(c->anchors);
    mk_mem_free(c);
}
