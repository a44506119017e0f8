/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/rules.h"

#include <openssl/x509.h>

#include "base/str.h"
#include "tls/anchors.h"
#include "tls/problem.h"

#define CIPHERS                                                                                              \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                             \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                             \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"

enum { WORD_MAX = 128 };

/* ---- Words ---- */

static bool is_any_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* A list of names, as OpenSSL takes them. */
struct kind {
    const char *what, *example;
    const char *between; /* two names */
    int (*set)(SSL_CTX *ctx, const char *list);
};

static const struct kind ciphers = {.what = "TLS 1.2",
                                    .example = "ECDHE-ECDSA-AES128-GCM-SHA256",
                                    .between = ":, ",
                                    .set = SSL_CTX_set_cipher_list};
static const struct kind suites = {
    .what = "TLS 1.3", .example = "TLS_AES_128_GCM_SHA256", .between = ": ", .set = SSL_CTX_set_ciphersuites};

/* Excluded names may be unknown to this OpenSSL, and names after DEFAULT are not checked. */
static bool is_known(const struct mk_tls_context *c, const struct kind *k, const char *word)
{
    bool is_default = strncmp(word, "DEFAULT", 7) == 0;
    if (!*word || is_any_of(*word, "!-+@"))
        return true;
    return (!is_default || !word[7] || word[7] == '@') && k->set(c->ctx, word);
}

/* OpenSSL ignores unknown words as long as it knows one. */
static mk_err check_words(struct mk_tls_context *c, const struct kind *k, const char *list,
                          struct mk_tls_problem *problem)
{
    char word[WORD_MAX];
    while (list && *list) {
        size_t n = strcspn(list, k->between);
        if (n >= sizeof word)
            return mk_tls_problem_set(
                problem, NULL, "a cipher of %s has a name that is too long: \"%.40s...\"", k->what, list);
        memcpy(word, list, n);
        word[n] = '\0';
        if (!is_known(c, k, word))
            return mk_tls_problem_set(problem, NULL,
                                      "\"%s\" is not a cipher of %s: expected OpenSSL names, such as %s",
                                      word, k->what, k->example);
        list += n;
        list += strspn(list, k->between);
    }
    return 0;
}

static mk_err set_ciphers(struct mk_tls_context *c, const struct mk_tls_rules *r,
                          struct mk_tls_problem *problem)
{
    mk_err e = check_words(c, &ciphers, r->ciphers, problem);
    if (!e)
        e = check_words(c, &suites, r->suites, problem);
    if (e)
        return e;
    if (!SSL_CTX_set_cipher_list(c->ctx, r->ciphers ? r->ciphers : CIPHERS))
        return mk_tls_problem_set(problem, NULL, "\"%s\" leaves no cipher of TLS 1.2", r->ciphers);
    if (!SSL_CTX_set_ciphersuites(c->ctx, r->suites ? r->suites : SUITES))
        return mk_tls_problem_set(problem, NULL,
                                  "\"%s\" is not a list of TLS 1.3 ciphers: expected names such as "
                                  "TLS_AES_128_GCM_SHA256, with `:` between them",
                                  r->suites);
    return 0;
}

static mk_err set_groups(struct mk_tls_context *c, const struct mk_tls_rules *r,
                         struct mk_tls_problem *problem)
{
    c->groups = OPENSSL_strdup(r->groups ? r->groups : GROUPS);
    if (!c->groups)
        return -ENOMEM;
    if (SSL_CTX_set1_groups_list(c->ctx, c->groups))
        return 0;
    return mk_tls_problem_set(
        problem, NULL,
        "\"%s\" is not a list of groups: expected names such as X25519 and P-256, with `:` between "
        "them",
        c->groups);
}

mk_err mk_tls_rules_set(struct mk_tls_context *c, const struct mk_tls_rules *r,
                        struct mk_tls_problem *problem)
{
    (void)SSL_CTX_set_min_proto_version(c->ctx, r->oldest >= 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    mk_err e = set_ciphers(c, r, problem);
    return e ? e : set_groups(c, r, problem);
}

/* ---- Clients ---- */

struct clients {
    struct mk_tls_context *context;
    EVP_MD_CTX *digest;
};

static mk_err add_authority(void *ctx, X509 *x)
{
    struct clients *clients = ctx;
    SSL_CTX *to = clients->context->ctx;
    unsigned char fingerprint[EVP_MAX_MD_SIZE];
    unsigned n;
    bool ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(to), x) && SSL_CTX_add_client_CA(to, x) &&
              X509_digest(x, EVP_sha256(), fingerprint, &n) &&
              EVP_DigestUpdate(clients->digest, fingerprint, n);
    return ok ? 0 : -ENOMEM;
}

static mk_err set_clients(struct mk_tls_context *c, const struct mk_tls_rules *r, EVP_MD_CTX *digest,
                          struct mk_tls_problem *problem)
{
    const uint8_t kind = (uint8_t)r->clients;
    unsigned n;
    mk_err e = 0;
    if (!digest || !EVP_DigestInit_ex(digest, EVP_sha256(), NULL) ||
        !EVP_DigestUpdate(digest, &kind, sizeof kind))
        return -ENOMEM;
    if (r->clients != MK_TLS_CLIENTS_OFF) {
        if (!r->client_authority)
            return mk_tls_problem_set(
                problem, NULL, "client certificates are requested, but no authority for them is given");
        int mode = r->clients == MK_TLS_CLIENTS_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
        SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER | mode, NULL);
        X509_STORE_set_flags(SSL_CTX_get_cert_store(c->ctx), X509_V_FLAG_PARTIAL_CHAIN);
        e = mk_tls_anchors_read(r->client_authority, "client authority", add_authority,
                                &(struct clients){c, digest}, problem);
    }
    if (!e && !EVP_DigestFinal_ex(digest, c->session_id, &n))
        e = -ENOMEM;
    return e;
}

mk_err mk_tls_rules_set_clients(struct mk_tls_context *c, const struct mk_tls_rules *r,
                                struct mk_tls_problem *problem)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    mk_err e = set_clients(c, r, digest, problem);
    EVP_MD_CTX_free(digest);
    if (!e && !SSL_CTX_set_session_id_context(c->ctx, c->session_id, sizeof c->session_id))
        e = -ENOMEM;
    return e;
}
