/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates in a folder, a server stream, and an OpenSSL client at the other end of a socket pair. */
#ifndef MK_UNIT_TLS_FIXTURE_H
#define MK_UNIT_TLS_FIXTURE_H

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "tls/conn_info.h"
#include "tls/context.h"
#include "tls/stream.h"
#include "unit/folder.h"
#include "unit/harness.h"
#include "unit/test.h"

enum { TLS_FIXTURE_PATHS = 16 };

struct tls_fixture {
    struct folder folder;
    char paths[TLS_FIXTURE_PATHS][128];
    unsigned n_paths;
    struct mk_tls_keypair pair;
    struct mk_tls_server_settings rules;
    struct mk_tls_tickets tickets;
    struct mk_tls_context *context; /* the context for every name */
    struct mk_tls_domain domain;
    struct mk_tls_settings_error problem;
    SSL_CTX *clients;
    /* The connection. */
    struct mk_stream s;
    SSL *client;
    int fd; /* descriptor of the client */
    char server_name[256];
};

static inline const char *tls_fixture_path(struct tls_fixture *w, const char *name)
{
    assert_true(w->n_paths < TLS_FIXTURE_PATHS);
    char *path = w->paths[w->n_paths++];
    snprintf(path, sizeof w->paths[0], "%s/%s", w->folder.path, name);
    return path;
}

static inline const char *tls_fixture_write_pem(struct tls_fixture *w, const char *name, EVP_PKEY *key,
                                                X509 *x)
{
    const char *path = tls_fixture_path(w, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(!x || PEM_write_X509(f, x));
    assert_true(!key || PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
    assert_int_equal(fchmod(fileno(f), 0600), 0);
    fclose(f);
    return path;
}

static inline X509 *tls_fixture_sign(EVP_PKEY *key, const char *name, int from_days, int days)
{
    X509 *x = X509_new();
    X509_NAME *subject = X509_get_subject_name(x);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 0x4711);
    X509_gmtime_adj(X509_getm_notBefore(x), from_days * 86400L);
    X509_gmtime_adj(X509_getm_notAfter(x), days * 86400L);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, subject);
    X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

/* Creates a self-signed certificate and its key: NAME.pem and NAME.key. */
static inline struct mk_tls_keypair tls_fixture_keypair(struct tls_fixture *w, const char *name,
                                                        EVP_PKEY *key, int from_days, int days)
{
    char leaf[64];
    X509 *x = tls_fixture_sign(key, name, from_days, days);
    struct mk_tls_keypair pair = {0};
    snprintf(leaf, sizeof leaf, "%s.pem", name);
    pair.certificate = tls_fixture_write_pem(w, leaf, NULL, x);
    snprintf(leaf, sizeof leaf, "%s.key", name);
    pair.key = tls_fixture_write_pem(w, leaf, key, NULL);
    X509_free(x);
    EVP_PKEY_free(key);
    return pair;
}

static inline const struct mk_tls_context *tls_fixture_choose(void *ctx, mk_str name)
{
    struct tls_fixture *w = ctx;
    if (name.p)
        snprintf(w->server_name, sizeof w->server_name, "%.*s", MK_STR_ARG(name));
    return w->context;
}

static inline void tls_fixture_init(struct tls_fixture *w)
{
    memset(w, 0, sizeof *w);
    folder_init(&w->folder);
    w->pair = tls_fixture_keypair(w, "own", EVP_EC_gen("P-256"), -1, 30);
    for (unsigned i = 0; i < MK_TLS_TICKET_KEYS; i++)
        memset(&w->tickets.keys[i], (int)i + 1, sizeof w->tickets.keys[i]);
    w->tickets.newest = 5;
    w->rules = (struct mk_tls_server_settings){
        .pairs = &w->pair, .n_pairs = 1, .oldest = 12, .h2 = true, .tickets = &w->tickets};
    w->domain = (struct mk_tls_domain){.choose = tls_fixture_choose, .ctx = w};
    w->clients = SSL_CTX_new(TLS_client_method());
    w->fd = -1;
    w->s.fd = -1;
    SSL_CTX_set_mode(w->clients, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(w->clients, SSL_SESS_CACHE_CLIENT);
}

static inline void tls_fixture_load(struct tls_fixture *w)
{
    if (mk_tls_context_new(&w->rules, &w->context, &w->problem))
        fail_msg("%s: %s", w->problem.file ? w->problem.file : "", w->problem.text);
}

static inline void tls_fixture_close(struct tls_fixture *w)
{
    if (w->s.tls)
        w->s.ops->close(&w->s);
    SSL_free(w->client);
    w->client = NULL;
    mk_fd_close(&w->fd);
}

static inline void tls_fixture_fini(struct tls_fixture *w)
{
    tls_fixture_close(w);
    mk_tls_context_free(w->context);
    SSL_CTX_free(w->clients);
    folder_fini(&w->folder);
}

HARNESS_FIXTURE(tls_fixture, struct tls_fixture);

/* ---- Connection ---- */

/* Opens the server's stream of a new connection. Returns 0, or the error if that fails. */
static inline mk_err tls_fixture_accept(struct tls_fixture *w, mk_str early)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    w->fd = ends[1];
    mk_err e = mk_tls_stream_open(&w->s, ends[0], &w->domain, early);
    if (e)
        mk_fd_close(&ends[0]);
    return e;
}

static inline void tls_fixture_set_client(struct tls_fixture *w)
{
    w->client = SSL_new(w->clients);
    SSL_set_fd(w->client, w->fd);
    SSL_set_tlsext_host_name(w->client, "Own.Example");
    SSL_set_connect_state(w->client);
}

/* Runs the handshake until both sides are done or the server has failed. */
static inline mk_err tls_fixture_handshake(struct tls_fixture *w, const char **why)
{
    mk_err e = -EAGAIN;
    bool done = false;
    for (int i = 0; i < 50 && (e == -EAGAIN || !done); i++) {
        done = SSL_do_handshake(w->client) == 1;
        w->s.dry = false;
        if (e == -EAGAIN)
            e = mk_tls_stream_handshake(&w->s, why);
        if (e && e != -EAGAIN)
            return e;
    }
    ERR_clear_error();
    return done ? e : -EAGAIN;
}

static inline void tls_fixture_connect(struct tls_fixture *w)
{
    const char *why = "";
    assert_int_equal(tls_fixture_accept(w, mk_str_of(NULL, 0)), 0);
    tls_fixture_set_client(w);
    mk_err e = tls_fixture_handshake(w, &why);
    if (e)
        fail_msg("%d: %s", e, why);
}

static inline ssize_t tls_fixture_read(struct tls_fixture *w, char *buffer, size_t cap)
{
    w->s.dry = false; /* as after an event */
    return w->s.ops->read(&w->s, buffer, cap);
}

#endif
