/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/client_hello.h"

#include <openssl/err.h>
#include <stdio.h>

#include "tls/bio.h"
#include "tls/ex_data.h"
#include "tls/keypair.h"
#include "tls/on_demand.h"

enum { NAME_MAX_LEN = 253 };

#define CHALLENGE                                                                                            \
    "\x0a"                                                                                                   \
    "acme-tls/1" /* RFC 8737 */

/* ---- Parsing ---- */

/* Gets the host name from the server_name extension (RFC 6066, section 3), in lower case and NUL-terminated.
 * Empty: the client sent none. False: malformed. */
static bool parse_server_name(SSL *ssl, char buf[NAME_MAX_LEN + 1])
{
    const unsigned char *p;
    size_t len;
    buf[0] = '\0';
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &len))
        return true;
    if (len < 5 || ((size_t)p[0] << 8 | p[1]) != len - 2 || p[2] != TLSEXT_NAMETYPE_host_name)
        return false;
    size_t n = (size_t)p[3] << 8 | p[4];
    if (n == 0 || n > NAME_MAX_LEN || n != len - 5 || memchr(p + 5, '\0', n))
        return false;
    for (size_t i = 0; i < n; i++)
        buf[i] = mk_char_lower((char)p[5 + i]);
    buf[n] = '\0';
    return true;
}

/* Is acme-tls/1 the only ALPN protocol that the client offers (RFC 8737)? */
static bool is_acme_challenge(SSL *ssl)
{
    const unsigned char *p;
    size_t len, n = sizeof CHALLENGE - 1;
    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &len) &&
           len == n + 2 && memcmp(p + 2, CHALLENGE, n) == 0;
}

/* ---- Selecting the host and the protocol ---- */

static bool apply_groups(SSL *ssl, const struct mk_tls_context *from, const struct mk_tls_context *to)
{
    bool same = from && strcmp(from->groups, to->groups) == 0;
    return same || SSL_set1_groups_list(ssl, to->groups) == 1;
}

/* SSL_set_SSL_CTX() applies certificates, ciphers and callbacks; everything else was copied from the initial
 * context, and is replaced here. */
static bool apply_context(SSL *ssl, const struct mk_tls_context *to)
{
    const struct mk_tls_context *from = mk_tls_ex_data_get_context(SSL_get_SSL_CTX(ssl));
    if (from == to)
        return true;
    if (!SSL_set_SSL_CTX(ssl, to->ctx))
        return false;
    uint64_t options = SSL_CTX_get_options(to->ctx);
    (void)SSL_clear_options(ssl, SSL_get_options(ssl) & ~options);
    (void)SSL_set_options(ssl, options);
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(to->ctx), NULL);
    return SSL_set_min_proto_version(ssl, SSL_CTX_get_min_proto_version(to->ctx)) &&
           SSL_set_num_tickets(ssl, SSL_CTX_get_num_tickets(to->ctx)) &&
           SSL_set_session_id_context(ssl, to->session_id, sizeof to->session_id) &&
           apply_groups(ssl, from, to);
}

/* Can the name safely be part of a path? */
static bool is_plain_host_name(const char *name)
{
    for (const char *p = name; *p; p++) {
        bool plain = mk_char_is_alpha(*p) || mk_char_is_digit(*p) || *p == '-' || *p == '_';
        if (!plain && (*p != '.' || p == name || p[-1] == '.'))
            return false;
    }
    return *name;
}

static bool use_challenge_certificate(SSL *ssl, const struct mk_tls_context *c, const char *name)
{
    char file[4096];
    if (!c->challenges || !is_plain_host_name(name))
        return false;
    int n = snprintf(file, sizeof file, "%s/%s.pem", c->challenges, name);
    return n > 0 && (size_t)n < sizeof file && mk_tls_keypair_use_for_conn(ssl, file) == 0;
}

static int reject_hello(struct mk_tls *t, int *alert, int with, const char *error)
{
    t->why = error;
    *alert = with;
    return SSL_CLIENT_HELLO_ERROR;
}

/* The ACME server presents no client certificate, so other connections must not resume its session, and it
 * must not resume the session of another connection. */
static bool apply_challenge(SSL *ssl, const struct mk_tls_context *c, const char *name)
{
    static const unsigned char no_host[] = CHALLENGE;
    SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
    (void)SSL_set_options(ssl, SSL_OP_NO_TICKET);
    return SSL_set_num_tickets(ssl, 0) && SSL_set_session_id_context(ssl, no_host, sizeof no_host - 1) &&
           use_challenge_certificate(ssl, c, name);
}

static int apply_on_demand(struct mk_tls *t, const struct mk_tls_context *c, const char *name, int *alert)
{
    switch (is_plain_host_name(name) ? mk_tls_on_demand_apply(t, c, name) : -EINVAL) {
    case 0:
        return SSL_CLIENT_HELLO_SUCCESS;
    case -EINPROGRESS:
        return SSL_CLIENT_HELLO_RETRY;
    case -ENOENT:
    case -EINVAL:
        return reject_hello(t, alert, SSL_AD_UNRECOGNIZED_NAME,
                            "there is no certificate for the requested name");
    default:
        return reject_hello(t, alert, SSL_AD_INTERNAL_ERROR, "out of memory");
    }
}

int mk_tls_client_hello_cb(SSL *ssl, int *alert, void *arg)
{
    struct mk_tls *t = mk_tls_bio_stream(ssl);
    char name[NAME_MAX_LEN + 1];
    bool challenge = is_acme_challenge(ssl);
    (void)arg;
    if (t->challenge && !challenge) /* a second ClientHello must not differ from the first (RFC 8446, section
                                     * 4.1.2) */
        return reject_hello(t, alert, SSL_AD_ILLEGAL_PARAMETER,
                            "the client changed the protocol during the handshake");
    t->challenge = challenge;
    if (!parse_server_name(ssl, name))
        return reject_hello(t, alert, SSL_AD_DECODE_ERROR, "the requested name is malformed");
    const struct mk_tls_context *c =
        t->domain->choose(t->domain->ctx, *name ? mk_str_from_c(name) : mk_str_of(NULL, 0));
    if (!c)
        return reject_hello(t, alert, SSL_AD_UNRECOGNIZED_NAME, "no host has the requested name");
    if (!apply_context(ssl, c))
        return reject_hello(t, alert, SSL_AD_INTERNAL_ERROR, "out of memory");
    if (challenge && !apply_challenge(ssl, c, name))
        return reject_hello(t, alert, SSL_AD_UNRECOGNIZED_NAME,
                            "there is no challenge for the requested name");
    return c->on_demand && !challenge && *name ? apply_on_demand(t, c, name, alert)
                                               : SSL_CLIENT_HELLO_SUCCESS;
}

int mk_tls_client_hello_servername_cb(SSL *ssl, int *alert, void *arg)
{
    (void)ssl;
    (void)alert;
    (void)arg;
    return SSL_TLSEXT_ERR_OK; /* the name has already selected the context */
}

/* ---- ALPN ---- */

static bool alpn_offers(const unsigned char *in, unsigned in_len, mk_str name)
{
    for (unsigned i = 0; i < in_len; i += 1u + in[i])
        if (mk_str_eq(mk_str_of((const char *)in + i + 1, mk_min(in[i], in_len - i - 1)), name))
            return true;
    return false;
}

int mk_tls_client_hello_alpn_cb(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                const unsigned char *in, unsigned in_len, void *arg)
{
    const struct mk_tls_context *c = mk_tls_ex_data_get_context(SSL_get_SSL_CTX(ssl));
    static const mk_str h2 = MK_STR_INIT("h2"), h1 = MK_STR_INIT("http/1.1"), h10 = MK_STR_INIT("http/1.0");
    static const mk_str challenge = MK_STR_INIT("acme-tls/1");
    const mk_str *chosen = NULL;
    (void)arg;
    if (in_len == sizeof CHALLENGE - 1 && memcmp(in, CHALLENGE, in_len) == 0)
        chosen = &challenge; /* apply_challenge() has found the certificate */
    else if (c && c->h2 && alpn_offers(in, in_len, h2))
        chosen = &h2;
    else if (alpn_offers(in, in_len, h1))
        chosen = &h1;
    else if (alpn_offers(in, in_len, h10))
        chosen = &h10;
    if (!chosen)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = (const unsigned char *)chosen->p;
    *out_len = (unsigned char)chosen->len;
    return SSL_TLSEXT_ERR_OK;
}
