/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/context.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls/client_hello.h"
#include "tls/ex_data.h"
#include "tls/keypair.h"
#include "tls/loaded_keypair.h"
#include "tls/ocsp_staple.h"
#include "tls/policy.h"
#include "tls/session_ticket.h"
#include "tls/settings_error.h"

#define OPTIONS                                                                                              \
    (SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |                     \
     SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF)

/* ---- Options of all contexts ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t kernel_option;

/* With kernel TLS, setsockopt() fails because the socket is not connected; without it, because the name "tls"
 * is unknown. */
static bool kernel_supports_tls(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool can = fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") < 0 && errno == ENOTCONN;
    if (fd >= 0)
        (void)close(fd);
    return can;
}

static void detect_kernel_tls(void)
{
    kernel_option = kernel_supports_tls() ? SSL_OP_ENABLE_KTLS : 0;
}

static SSL_CTX *new_server_ctx(void)
{
    pthread_once(&once, detect_kernel_tls);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return NULL;
    (void)SSL_CTX_set_options(ctx, OPTIONS | kernel_option);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_timeout(ctx, MK_TLS_SESSION_S);
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_client_hello_cb(ctx, mk_tls_client_hello_cb, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, mk_tls_client_hello_alpn_cb, NULL);
    SSL_CTX_set_tlsext_servername_callback(ctx, mk_tls_client_hello_servername_cb);
    SSL_CTX_set_tlsext_status_cb(ctx, mk_tls_ocsp_staple_status_cb);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, mk_tls_session_ticket_key_cb);
    (void)SSL_CTX_set_session_ticket_cb(ctx, NULL, mk_tls_session_ticket_decrypt_cb, NULL);
    return ctx;
}

static SSL_CTX *bare_ctx;

static void create_bare_ctx(void)
{
    bare_ctx = new_server_ctx();
}

SSL_CTX *mk_tls_context_without_certificate(void)
{
    static pthread_once_t once_bare = PTHREAD_ONCE_INIT;
    pthread_once(&once_bare, create_bare_ctx);
    return bare_ctx;
}

/* ---- The context of a host ---- */

static mk_err set_session_tickets(struct mk_tls_context *c, const struct mk_tls_server_settings *r)
{
    c->tickets = r->tickets;
    if (!r->tickets)
        (void)SSL_CTX_set_options(c->ctx, SSL_OP_NO_TICKET);
    return SSL_CTX_set_num_tickets(c->ctx, r->tickets ? 1 : 0) ? 0 : -ENOMEM;
}

static mk_err init_context(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                           struct mk_tls_settings_error *problem)
{
    mk_err e = mk_tls_policy_apply(c, r, problem);
    c->h2 = r->h2;
    c->on_demand = r->on_demand;
    bool too_few = !r->n_pairs && !r->challenges && !r->on_demand; /* the others are loaded later */
    if (!e && (too_few || r->n_pairs > MK_TLS_KEYPAIRS_MAX))
        e = mk_tls_settings_error_set(problem, NULL, "expected 1 to %d certificates", MK_TLS_KEYPAIRS_MAX);
    for (size_t i = 0; !e && i < r->n_pairs; i++)
        e = mk_tls_keypair_load(c, &r->pairs[i], problem);
    if (!e && r->base)
        e = mk_tls_keypair_reuse_others(c, r->base, problem);
    if (!e && r->challenges && !(c->challenges = OPENSSL_strdup(r->challenges)))
        e = -ENOMEM;
    if (!e)
        e = mk_tls_policy_apply_client_auth(c, r, problem);
    return e ? e : set_session_tickets(c, r);
}

static struct mk_tls_context *new_context(void)
{
    SSL_CTX *ctx = new_server_ctx();
    struct mk_tls_context *c = ctx ? OPENSSL_zalloc(sizeof *c) : NULL;
    if (c && mk_tls_ex_data_set_context(ctx, c)) {
        c->ctx = ctx;
        return c;
    }
    OPENSSL_free(c);
    SSL_CTX_free(ctx);
    return NULL;
}

mk_err mk_tls_context_new(const struct mk_tls_server_settings *rules, struct mk_tls_context **out,
                          struct mk_tls_settings_error *problem)
{
    *problem = (struct mk_tls_settings_error){0};
    ERR_clear_error();
    struct mk_tls_context *c = new_context();
    if (!c)
        return mk_tls_settings_error_set_openssl(problem, NULL, "OpenSSL does not work");
    mk_err e = init_context(c, rules, problem);
    if (e && !*problem->text)
        (void)mk_tls_settings_error_set_openssl(problem, NULL, "OpenSSL failed");
    if (e) {
        SSL_CTX_free(c->ctx);
        return e;
    }
    *out = c;
    return 0;
}

void mk_tls_context_free(struct mk_tls_context *c)
{
    if (c)
        SSL_CTX_free(c->ctx);
}

int64_t mk_tls_context_valid_from(const struct mk_tls_context *c)
{
    return c->begins;
}

bool mk_tls_context_has_certificate(const struct mk_tls_context *c, const char *certificate)
{
    return mk_tls_loaded_keypair_find(c, certificate);
}

int64_t mk_tls_context_valid_until(const struct mk_tls_context *c)
{
    return c->expires;
}
