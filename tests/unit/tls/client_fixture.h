/* SPDX-License-Identifier: Apache-2.0 */
/* Our client and our server, with their own certificate authority and a relay between them that splits
 * records. */
#ifndef MK_UNIT_TLS_CLIENT_FIXTURE_H
#define MK_UNIT_TLS_CLIENT_FIXTURE_H

#include <openssl/x509v3.h>
#include <time.h>

#include "tls/client.h"
#include "tls/connect.h"
#include "tls/session.h"
#include "unit/harness.h"
#include "unit/tls/fixture.h"

enum { TLS_CLIENT_PIECE = 1 << 16, TLS_CLIENT_DAY = 86400 };

struct issuer {
    EVP_PKEY *key;
    X509 *x;
    const char *file; /* its certificate file */
};

/* Properties of a certificate; all zero: a server certificate, valid from yesterday for 30 days. */
struct subject {
    const char *names; /* "DNS:a.example,IP:127.0.0.1"; NULL: only the common name */
    const char *usage; /* NULL: serverAuth */
    int from, days;    /* start and end of the validity, in days from now */
    unsigned bits;     /* size of the RSA key; 0: P-256 */
    bool is_authority;
};

struct tls_client_fixture {
    struct tls_fixture w; /* w.s is the server's stream */
    struct issuer authority;
    struct mk_tls_client_settings rules;
    struct mk_tls_client *client;
    struct mk_tls_session *session;
    struct mk_stream s;       /* stream of the client */
    int at_client, at_server; /* descriptors of the relay */
    size_t piece;             /* largest piece that the relay passes on at a time */
    const char *why;
    mk_err server_error; /* result of the server's handshake */
};

/* ---- Certificates ---- */

static inline void tls_client_extend(X509 *x, X509 *by, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, by, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(e);
    assert_true(X509_add_ext(x, e, -1));
    X509_EXTENSION_free(e);
}

/* Signs a certificate; `by` NULL: self-signed. */
static inline X509 *tls_client_sign(EVP_PKEY *key, const char *name, const struct issuer *by,
                                    struct subject s)
{
    static long serial = 1;
    X509 *x = tls_fixture_sign(key, name, s.from ? s.from : -1, s.days ? s.days : 30);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    if (by)
        X509_set_issuer_name(x, X509_get_subject_name(by->x));
    tls_client_extend(x, by ? by->x : x, NID_basic_constraints,
                      s.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (s.names)
        tls_client_extend(x, x, NID_subject_alt_name, s.names);
    if (!s.is_authority)
        tls_client_extend(x, x, NID_ext_key_usage, s.usage ? s.usage : "serverAuth");
    assert_true(X509_sign(x, by ? by->key : key, EVP_sha256()) > 0);
    return x;
}

static inline struct issuer tls_client_issuer(struct tls_fixture *w, const char *name,
                                              const struct issuer *by, struct subject s)
{
    char leaf[64];
    s.is_authority = true;
    struct issuer i = {.key = EVP_EC_gen("P-256")};
    i.x = tls_client_sign(i.key, name, by, s);
    snprintf(leaf, sizeof leaf, "%s.ca", name);
    i.file = tls_fixture_write_pem(w, leaf, NULL, i.x);
    return i;
}

static inline void tls_client_issuer_free(struct issuer *i)
{
    EVP_PKEY_free(i->key);
    X509_free(i->x);
    *i = (struct issuer){0};
}

/* Writes NAME.pem, which includes the key. */
static inline struct mk_tls_keypair tls_client_keypair(struct tls_fixture *w, const char *name,
                                                       const struct issuer *by, struct subject s)
{
    char leaf[64];
    EVP_PKEY *key = s.bits ? EVP_RSA_gen(s.bits) : EVP_EC_gen("P-256");
    X509 *x = tls_client_sign(key, name, by, s);
    snprintf(leaf, sizeof leaf, "%s.pem", name);
    struct mk_tls_keypair pair = {.certificate = tls_fixture_write_pem(w, leaf, key, x)};
    X509_free(x);
    EVP_PKEY_free(key);
    return pair;
}

/* ---- Client and server ---- */

static inline void tls_client_serve(struct tls_client_fixture *c, struct mk_tls_keypair pair)
{
    mk_tls_context_free(c->w.context);
    c->w.context = NULL;
    c->w.pair = pair;
    tls_fixture_load(&c->w);
}

static inline void tls_client_load(struct tls_client_fixture *c)
{
    mk_tls_client_free(c->client);
    c->client = NULL;
    if (mk_tls_client_new(&c->rules, &c->client, &c->w.problem))
        fail_msg("%s: %s", c->w.problem.file ? c->w.problem.file : "", c->w.problem.text);
}

static inline void tls_client_init(struct tls_client_fixture *c)
{
    memset(c, 0, sizeof *c);
    tls_fixture_init(&c->w);
    c->at_client = c->at_server = c->s.fd = -1;
    c->piece = TLS_CLIENT_PIECE;
    c->authority = tls_client_issuer(&c->w, "authority", NULL, (struct subject){0});
    tls_client_serve(
        c, tls_client_keypair(
               &c->w, "server", &c->authority,
               (struct subject){.names = "DNS:a.example,DNS:*.b.example,IP:192.0.2.1,IP:2001:db8::1"}));
    c->rules = (struct mk_tls_client_settings){.authority = c->authority.file, .verifies = true};
    tls_client_load(c);
}

static inline void tls_client_close(struct tls_client_fixture *c)
{
    tls_fixture_close(&c->w);
    if (c->s.tls)
        c->s.ops->close(&c->s);
    mk_fd_close(&c->at_client);
    mk_fd_close(&c->at_server);
}

static inline void tls_client_fini(struct tls_client_fixture *c)
{
    tls_client_close(c);
    mk_tls_session_free(c->session);
    mk_tls_client_free(c->client);
    tls_client_issuer_free(&c->authority);
    tls_fixture_fini(&c->w);
}

HARNESS_FIXTURE(tls_client, struct tls_client_fixture);

/* ---- Relay ---- */

/* Relays one piece. Returns false if there was nothing to relay. */
static inline bool tls_client_relay_piece(int from, int to, size_t piece)
{
    char buffer[TLS_CLIENT_PIECE];
    ssize_t n = from < 0 || to < 0 ? -1 : recv(from, buffer, mk_min(piece, sizeof buffer), MSG_PEEK);
    if (n == 0)
        (void)shutdown(to, SHUT_WR);
    if (n <= 0)
        return false;
    n = send(to, buffer, (size_t)n, MSG_NOSIGNAL);
    return n > 0 && recv(from, buffer, (size_t)n, 0) == n;
}

/* Relays one piece in each direction. Returns false if there was nothing to relay. */
static inline bool tls_client_relay(struct tls_client_fixture *c)
{
    bool there = tls_client_relay_piece(c->at_client, c->at_server, c->piece);
    bool back = tls_client_relay_piece(c->at_server, c->at_client, c->piece);
    return there || back;
}

static inline void tls_client_relay_all(struct tls_client_fixture *c)
{
    while (tls_client_relay(c))
        ;
}

/* Opens the client's stream; its output arrives at at_client. */
static inline mk_err tls_client_open(struct tls_client_fixture *c, const char *name)
{
    int ends[2];
    c->why = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    c->at_client = ends[1];
    mk_err e = mk_tls_connect(&c->s, ends[0], c->client, name, &c->session, false);
    if (e)
        mk_fd_close(&ends[0]);
    return e;
}

static inline mk_err tls_client_accept(struct tls_client_fixture *c)
{
    mk_err e = tls_fixture_accept(&c->w, mk_str_of(NULL, 0));
    c->at_server = c->w.fd; /* the relay is its only user */
    c->w.fd = -1;
    return e;
}

/* Runs the handshake until there are no more bytes to relay. Returns the client's result; c->server_error is
 * the server's result, or -EAGAIN if the server still waits for the client. */
static inline mk_err tls_client_handshake(struct tls_client_fixture *c)
{
    mk_err ours = -EAGAIN;
    const char *unheard;
    bool moved = true;
    c->server_error = -EAGAIN;
    while (moved) {
        c->s.dry = c->w.s.dry = false;
        if (ours == -EAGAIN)
            ours = mk_tls_stream_handshake(&c->s, &c->why);
        if (c->server_error == -EAGAIN)
            c->server_error = mk_tls_stream_handshake(&c->w.s, &unheard);
        moved = tls_client_relay(c);
    }
    return ours;
}

static inline mk_err tls_client_try_connect(struct tls_client_fixture *c, const char *name)
{
    assert_int_equal(tls_client_open(c, name), 0);
    assert_int_equal(tls_client_accept(c), 0);
    return tls_client_handshake(c);
}

static inline ssize_t tls_client_read(struct mk_stream *s, char *buffer, size_t cap)
{
    s->dry = false; /* as after an event */
    return s->ops->read(s, buffer, cap);
}

/* Relays all pending data in both directions, then reads the available bytes. */
static inline ssize_t tls_client_relay_and_read(struct tls_client_fixture *c, struct mk_stream *s,
                                                char *buffer, size_t cap)
{
    ssize_t n = -EAGAIN;
    bool moved = true;
    while (n == -EAGAIN && moved) {
        moved = tls_client_relay(c);
        n = tls_client_read(s, buffer, cap);
    }
    return n;
}

/* The server's handshake finishes with the client's first bytes. */
static inline void tls_client_connect(struct tls_client_fixture *c, const char *name)
{
    char buffer[16];
    const char *why = "";
    mk_err e = -EAGAIN;
    if (tls_client_try_connect(c, name))
        fail_msg("%s", c->why);
    assert_int_equal(c->s.ops->write(&c->s, MK_STR("hello"), false), 5);
    while (e == -EAGAIN && tls_client_relay(c)) {
        c->w.s.dry = false;
        e = mk_tls_stream_handshake(&c->w.s, &why);
    }
    if (e)
        fail_msg("%d: %s", e, why);
    assert_int_equal(tls_client_relay_and_read(c, &c->w.s, buffer, sizeof buffer), 5);
    assert_int_equal(c->w.s.ops->write(&c->w.s, MK_STR("answer"), false), 6);
    assert_int_equal(tls_client_relay_and_read(c, &c->s, buffer, sizeof buffer), 6);
    assert_memory_equal(buffer, "answer", 6);
}

#endif
