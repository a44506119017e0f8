/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/context.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls/hello.h"
#include "tls/pair.h"
#include "tls/problem.h"
#include "tls/rules.h"
#include "tls/slot.h"
#include "tls/source.h"
#include "tls/staple.h"
#include "tls/ticket.h"

#define OPTIONS                                                                                              \
    (SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |                     \
     SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF)

/* ---- For all of them ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t kernel_option;

/* With kernel TLS the call fails because the socket is not connected; without it, because the name is
 * unknown. */
static bool kernel_can(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool can = fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls") < 0 && errno == ENOTCONN;
    if (fd >= 0)
        (void)close(fd);
    return can;
}

static void prepare(void)
{
    kernel_option = kernel_can() ? SSL_OP_ENABLE_KTLS : 0;
}

static SSL_CTX *new_ctx(void)
{
    pthread_once(&once, prepare);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        return NULL;
    (void)SSL_CTX_set_options(ctx, OPTIONS | kernel_option);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_timeout(ctx, MK_TLS_SESSION_S);
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_client_hello_cb(ctx, mk_tls_hello_on_hello, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, mk_tls_hello_on_protocols, NULL);
    SSL_CTX_set_tlsext_servername_callback(ctx, mk_tls_hello_on_name);
    SSL_CTX_set_tlsext_status_cb(ctx, mk_tls_staple_on_status);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, mk_tls_ticket_on_key);
    (void)SSL_CTX_set_session_ticket_cb(ctx, NULL, mk_tls_ticket_on_open, NULL);
    return ctx;
}

static SSL_CTX *bare;

static void make_bare(void)
{
    bare = new_ctx();
}

SSL_CTX *mk_tls_context_bare(void)
{
    static pthread_once_t once_bare = PTHREAD_ONCE_INIT;
    pthread_once(&once_bare, make_bare);
    return bare;
}

/* ---- One ---- */

static mk_err set_tickets(struct mk_tls_context *c, const struct mk_tls_rules *r)
{
    c->tickets = r->tickets;
    if (!r->tickets)
        (void)SSL_CTX_set_options(c->ctx, SSL_OP_NO_TICKET);
    return SSL_CTX_set_num_tickets(c->ctx, r->tickets ? 1 : 0) ? 0 : -ENOMEM;
}

static mk_err fill(struct mk_tls_context *c, const struct mk_tls_rules *r, struct mk_tls_problem *problem)
{
    mk_err e = mk_tls_rules_set(c, r, problem);
    c->h2 = r->h2;
    bool too_few = !r->n_pairs && !r->challenges; /* those come later */
    if (!e && (too_few || r->n_pairs > MK_TLS_PAIRS_MAX))
        e = mk_tls_problem_set(problem, NULL, "expected 1 to %d certificates", MK_TLS_PAIRS_MAX);
    for (size_t i = 0; !e && i < r->n_pairs; i++)
        e = mk_tls_pair_load(c, &r->pairs[i], problem);
    if (!e && r->challenges && !(c->challenges = OPENSSL_strdup(r->challenges)))
        e = -ENOMEM;
    if (!e)
        e = mk_tls_rules_set_clients(c, r, problem);
    return e ? e : set_tickets(c, r);
}

static struct mk_tls_context *make(void)
{
    SSL_CTX *ctx = new_ctx();
    struct mk_tls_context *c = ctx ? OPENSSL_zalloc(sizeof *c) : NULL;
    if (c && mk_tls_slot_set(ctx, c)) {
        c->ctx = ctx;
        return c;
    }
    OPENSSL_free(c);
    SSL_CTX_free(ctx);
    return NULL;
}

mk_err mk_tls_context_new(const struct mk_tls_rules *rules, struct mk_tls_context **out,
                          struct mk_tls_problem *problem)
{
    *problem = (struct mk_tls_problem){0};
    ERR_clear_error();
    struct mk_tls_context *c = make();
    if (!c)
        return mk_tls_problem_set_by(problem, NULL, "OpenSSL does not work");
    mk_err e = fill(c, rules, problem);
    if (e && !*problem->text)
        (void)mk_tls_problem_set_by(problem, NULL, "OpenSSL failed");
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

int64_t mk_tls_context_begins(const struct mk_tls_context *c)
{
    return c->begins;
}

bool mk_tls_context_has(const struct mk_tls_context *c, const char *certificate)
{
    return mk_tls_source_find(c, certificate);
}

int64_t mk_tls_context_expires(const struct mk_tls_context *c)
{
    return c->expires;
}
