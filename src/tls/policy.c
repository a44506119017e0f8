/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/policy.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/str.h"
#include "tls/settings_error.h"
#include "tls/trust_store.h"

#define CIPHERS                                                                                              \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                             \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                             \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
/* With OpenSSL 3.5 or later: X25519 together with ML-KEM, which protects recorded connections from quantum computers
 * (draft-ietf-tls-ecdhe-mlkem). */
#define HYBRID_GROUPS "X25519MLKEM768:" GROUPS

enum { WORD_MAX = 128 };

/* ---- Words ---- */

static bool char_in_set(char c, const char *set)
{
    return c && strchr(set, c);
}

/* How to check and set a list of ciphers in OpenSSL syntax, for one group of TLS versions. */
struct cipher_list_kind {
    const char *what, *example;
    const char *between; /* separator */
    int (*set)(SSL_CTX *ctx, const char *list);
};

static const struct cipher_list_kind ciphers = {.what = "TLS 1.2",
                                                .example = "ECDHE-ECDSA-AES128-GCM-SHA256",
                                                .between = ":, ",
                                                .set = SSL_CTX_set_cipher_list};
static const struct cipher_list_kind suites = {
    .what = "TLS 1.3", .example = "TLS_AES_128_GCM_SHA256", .between = ": ", .set = SSL_CTX_set_ciphersuites};

/* Does this OpenSSL know the cipher? Excluded names may be unknown. OpenSSL also accepts unknown text
 * directly after DEFAULT; only "@" may follow it here. */
static bool is_known_cipher(const struct mk_tls_context *c, const struct cipher_list_kind *k,
                            const char *word)
{
    bool is_default = strncmp(word, "DEFAULT", 7) == 0;
    if (!*word || char_in_set(*word, "!-+@"))
        return true;
    return (!is_default || !word[7] || word[7] == '@') && k->set(c->ctx, word);
}

/* Checks each name by itself: OpenSSL ignores unknown names in a list if it knows at least one. */
static mk_err check_cipher_names(struct mk_tls_context *c, const struct cipher_list_kind *k, const char *list,
                                 struct mk_tls_settings_error *problem)
{
    char word[WORD_MAX];
    while (list && *list) {
        size_t n = strcspn(list, k->between);
        if (n >= sizeof word)
            return mk_tls_settings_error_set(
                problem, NULL, "a cipher of %s has a name that is too long: \"%.40s...\"", k->what, list);
        memcpy(word, list, n);
        word[n] = '\0';
        if (!is_known_cipher(c, k, word))
            return mk_tls_settings_error_set(
                problem, NULL, "\"%s\" is not a cipher of %s: expected OpenSSL names, such as %s", word,
                k->what, k->example);
        list += n;
        list += strspn(list, k->between);
    }
    return 0;
}

static mk_err set_ciphers(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                          struct mk_tls_settings_error *problem)
{
    mk_err e = check_cipher_names(c, &ciphers, r->ciphers, problem);
    if (!e)
        e = check_cipher_names(c, &suites, r->suites, problem);
    if (e)
        return e;
    if (!SSL_CTX_set_cipher_list(c->ctx, r->ciphers ? r->ciphers : CIPHERS))
        return mk_tls_settings_error_set(problem, NULL, "\"%s\" selects no cipher of TLS 1.2", r->ciphers);
    if (!SSL_CTX_set_ciphersuites(c->ctx, r->suites ? r->suites : SUITES))
        return mk_tls_settings_error_set(problem, NULL,
                                         "\"%s\" is not a list of TLS 1.3 ciphers: expected names such as "
                                         "TLS_AES_128_GCM_SHA256, with `:` between them",
                                         r->suites);
    return 0;
}

static bool try_groups(struct mk_tls_context *c, const char *groups)
{
    OPENSSL_free(c->groups);
    c->groups = OPENSSL_strdup(groups);
    return c->groups && SSL_CTX_set1_groups_list(c->ctx, c->groups);
}

static mk_err set_groups(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                         struct mk_tls_settings_error *problem)
{
    bool is_set =
        r->groups ? try_groups(c, r->groups) : try_groups(c, HYBRID_GROUPS) || try_groups(c, GROUPS);
    ERR_clear_error();
    if (is_set)
        return 0;
    if (!c->groups)
        return -ENOMEM;
    return mk_tls_settings_error_set(
        problem, NULL,
        "\"%s\" is not a list of groups: expected names such as X25519 and P-256, with `:` between "
        "them",
        c->groups);
}

mk_err mk_tls_policy_apply(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                           struct mk_tls_settings_error *problem)
{
    (void)SSL_CTX_set_min_proto_version(c->ctx, r->oldest >= 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    mk_err e = set_ciphers(c, r, problem);
    return e ? e : set_groups(c, r, problem);
}

/* ---- Clients ---- */

struct client_authorities {
    struct mk_tls_context *context;
    EVP_MD_CTX *digest;
};

static mk_err add_client_authority(void *ctx, X509 *x)
{
    struct client_authorities *clients = ctx;
    SSL_CTX *to = clients->context->ctx;
    unsigned char fingerprint[EVP_MAX_MD_SIZE];
    unsigned n;
    bool ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(to), x) && SSL_CTX_add_client_CA(to, x) &&
              X509_digest(x, EVP_sha256(), fingerprint, &n) &&
              EVP_DigestUpdate(clients->digest, fingerprint, n);
    return ok ? 0 : -ENOMEM;
}

static mk_err set_client_auth(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                              EVP_MD_CTX *digest, struct mk_tls_settings_error *problem)
{
    const uint8_t client_mode = (uint8_t)r->clients;
    unsigned n;
    mk_err e = 0;
    if (!digest || !EVP_DigestInit_ex(digest, EVP_sha256(), NULL) ||
        !EVP_DigestUpdate(digest, &client_mode, sizeof client_mode))
        return -ENOMEM;
    if (r->clients != MK_TLS_CLIENTS_OFF) {
        if (!r->client_authority)
            return mk_tls_settings_error_set(
                problem, NULL, "client certificates are requested, but no client authority is configured");
        int mode = r->clients == MK_TLS_CLIENTS_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
        SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER | mode, NULL);
        X509_STORE_set_flags(SSL_CTX_get_cert_store(c->ctx), X509_V_FLAG_PARTIAL_CHAIN);
        e = mk_tls_trust_store_read_file(r->client_authority, "client authority", add_client_authority,
                                         &(struct client_authorities){c, digest}, problem);
    }
    if (!e && !EVP_DigestFinal_ex(digest, c->session_id, &n))
        e = -ENOMEM;
    return e;
}

mk_err mk_tls_policy_apply_client_auth(struct mk_tls_context *c, const struct mk_tls_server_settings *r,
                                       struct mk_tls_settings_error *problem)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    mk_err e = set_client_auth(c, r, digest, problem);
    EVP_MD_CTX_free(digest);
    if (!e && !SSL_CTX_set_session_id_context(c->ctx, c->session_id, sizeof c->session_id))
        e = -ENOMEM;
    return e;
}
