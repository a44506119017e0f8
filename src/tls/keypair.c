/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/keypair.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <time.h>

#include "tls/file.h"
#include "tls/loaded_keypair.h"
#include "tls/ocsp_staple.h"

enum { RSA_BITS_MIN = 2048, CHAIN_MAX = 16 };

/* ---- Certificates ---- */

static bool is_end_of_pem(const BIO *b, unsigned long e)
{
    (void)b;
    return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

static mk_err read_cert_chain(const struct mk_tls_keypair *pair, X509 **leaf, STACK_OF(X509) * chain,
                              struct mk_tls_settings_error *problem)
{
    BIO *b;
    X509 *x;
    const char *file = pair->certificate;
    mk_err e = pair->certificate_text
                   ? mk_tls_file_text_to_bio(pair->certificate_text, file, "certificate", &b, problem)
                   : mk_tls_file_read_to_bio(file, pair->from_plugin, "certificate", &b, problem);
    if (e)
        return e;
    *leaf = PEM_read_bio_X509_AUX(b, NULL, mk_tls_file_refuse_password_cb, NULL);
    if (!*leaf) {
        e = is_end_of_pem(b, ERR_peek_last_error())
                ? mk_tls_settings_error_set(
                      problem, file,
                      "it contains no certificate: expected PEM, \"-----BEGIN CERTIFICATE-----\"")
                : mk_tls_settings_error_set_openssl(problem, file, "the certificate is invalid");
        BIO_free(b);
        return e;
    }
    while (sk_X509_num(chain) < CHAIN_MAX &&
           (x = PEM_read_bio_X509(b, NULL, mk_tls_file_refuse_password_cb, NULL)))
        if (!sk_X509_push(chain, x)) {
            X509_free(x);
            break;
        }
    BIO_free(b);
    unsigned long last = ERR_peek_last_error();
    if (last && !is_end_of_pem(b, last))
        return mk_tls_settings_error_set_openssl(problem, file,
                                                 "a certificate after the first one is invalid");
    ERR_clear_error();
    return 0;
}

static int64_t asn1_time_seconds(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) : 0;
}

/* Warns if the certificate has expired or is not valid yet. This is not an error, because other hosts can
 * still be served. */
static void check_validity(const char *file, X509 *x, const char *which,
                           struct mk_tls_settings_error *problem)
{
    char when[64];
    int64_t until = asn1_time_seconds(X509_get0_notAfter(x)),
            from = asn1_time_seconds(X509_get0_notBefore(x));
    int64_t now = (int64_t)time(NULL);
    struct tm tm;
    time_t t = (time_t)(until < now ? until : from);
    gmtime_r(&t, &tm);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
    if (until < now)
        mk_tls_settings_error_warn(problem, file, "%s expired on %s: clients reject it", which, when);
    else if (from > now)
        mk_tls_settings_error_warn(problem, file, "%s is not valid before %s: clients reject it", which,
                                   when);
}

static mk_err check_key_type(const char *file, X509 *leaf, struct mk_tls_settings_error *problem)
{
    EVP_PKEY *key = X509_get0_pubkey(leaf);
    int kind = key ? EVP_PKEY_get_base_id(key) : EVP_PKEY_NONE;
    int bits = key ? EVP_PKEY_get_bits(key) : 0;
    if ((kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS) && bits < RSA_BITS_MIN)
        return mk_tls_settings_error_set(problem, file, "its RSA key has %d bits: expected at least %d", bits,
                                         RSA_BITS_MIN);
    if (kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS || kind == EVP_PKEY_EC || kind == EVP_PKEY_ED25519 ||
        kind == EVP_PKEY_ED448)
        return 0;
    return mk_tls_settings_error_set(problem, file,
                                     "TLS does not support its key type: expected RSA, ECDSA or Ed25519");
}

static mk_err check_certificates(const char *file, X509 *leaf, STACK_OF(X509) * chain,
                                 struct mk_tls_settings_error *problem)
{
    check_validity(file, leaf, "the certificate", problem);
    for (int i = 0; i < sk_X509_num(chain); i++)
        check_validity(file, sk_X509_value(chain, i), "a certificate after the first one", problem);
    return check_key_type(file, leaf, problem);
}

/* ---- Keys ---- */

static int password_cb(char *buf, int cap, int for_writing, void *asked)
{
    (void)buf;
    (void)cap;
    (void)for_writing;
    *(bool *)asked = true;
    return -1;
}

/* Frees the BIO. */
static mk_err parse_private_key(BIO *b, const char *file, EVP_PKEY **out,
                                struct mk_tls_settings_error *problem)
{
    bool asked = false;
    *out = PEM_read_bio_PrivateKey(b, NULL, password_cb, &asked);
    BIO_free(b);
    if (*out) {
        ERR_clear_error();
        return 0;
    }
    if (asked)
        return mk_tls_settings_error_set(
            problem, file,
            "the key is protected by a password: expected a key without a password, in a file that only "
            "the server may read");
    unsigned long last = ERR_peek_last_error();
    if (ERR_GET_LIB(last) == ERR_LIB_PEM || ERR_GET_REASON(last) == ERR_R_UNSUPPORTED)
        return mk_tls_settings_error_set(
            problem, file, "it contains no private key: expected PEM, \"-----BEGIN PRIVATE KEY-----\"");
    return mk_tls_settings_error_set_openssl(problem, file, "the key is invalid");
}

static mk_err read_private_key(const char *file, const struct mk_tls_keypair *pair, EVP_PKEY **out,
                               struct mk_tls_settings_error *problem)
{
    BIO *b;
    const char *text = pair->key_text ? pair->key_text : pair->certificate_text;
    mk_err e = text ? mk_tls_file_text_to_bio(text, file, "key", &b, problem)
                    : mk_tls_file_read_to_bio(file, pair->from_plugin, "key", &b, problem);
    return e ? e : parse_private_key(b, file, out, problem);
}

static void warn_key_permissions(const char *file, struct mk_tls_settings_error *problem)
{
    struct stat st;
    if (stat(file, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH))
        mk_tls_settings_error_warn(problem, file, "others can %s the key: expected mode 0600, not %04o",
                                   st.st_mode & S_IROTH ? "read" : "write", st.st_mode & 07777);
}

/* ---- Certificate and key ---- */

static mk_err use_keypair(struct mk_tls_context *c, const char *file, const char *key_file, X509 *leaf,
                          STACK_OF(X509) * chain, EVP_PKEY *key, struct mk_tls_settings_error *problem)
{
    if (mk_tls_loaded_keypair_has_key_type(c, leaf)) /* a client can select a certificate only by key type */
        return mk_tls_settings_error_set(
            problem, file,
            "another certificate has the same key type: expected one certificate for each key type");
    if (!SSL_CTX_use_certificate(c->ctx, leaf))
        return mk_tls_settings_error_set_openssl(problem, file, "OpenSSL rejects the certificate");
    if (!SSL_CTX_set1_chain(c->ctx, chain))
        return mk_tls_settings_error_set_openssl(problem, file,
                                                 "OpenSSL rejects the certificates after the first one");
    ERR_clear_error();
    if (!X509_check_private_key(leaf, key))
        return mk_tls_settings_error_set(
            problem, key_file,
            "the key does not belong to the certificate in %s: expected the private key of this "
            "certificate",
            file);
    return SSL_CTX_use_PrivateKey(c->ctx, key)
               ? 0
               : mk_tls_settings_error_set_openssl(problem, key_file, "OpenSSL rejects the key");
}

static mk_err store_keypair(struct mk_tls_context *c, const char *file, X509 *leaf, STACK_OF(X509) * chain,
                            EVP_PKEY *key)
{
    int64_t from = asn1_time_seconds(X509_get0_notBefore(leaf)),
            until = asn1_time_seconds(X509_get0_notAfter(leaf));
    c->begins = from > c->begins ? from : c->begins;
    c->expires = !c->expires || until < c->expires ? until : c->expires;
    return mk_tls_loaded_keypair_add(c, file, leaf, chain, key);
}

static mk_err load_keypair(struct mk_tls_context *c, const struct mk_tls_keypair *pair,
                           STACK_OF(X509) * chain, struct mk_tls_settings_error *problem)
{
    const char *key_file = pair->key ? pair->key : pair->certificate;
    X509 *leaf = NULL;
    EVP_PKEY *key = NULL;
    mk_err e = read_cert_chain(pair, &leaf, chain, problem);
    if (!e)
        e = check_certificates(pair->certificate, leaf, chain, problem);
    if (!e)
        e = read_private_key(key_file, pair, &key, problem);
    if (!e)
        e = use_keypair(c, pair->certificate, key_file, leaf, chain, key, problem);
    if (!e)
        e = mk_tls_ocsp_staple_load(c, leaf, pair->ocsp, problem);
    if (!e)
        e = store_keypair(c, pair->certificate, leaf, chain, key);
    if (!e && !pair->certificate_text)
        warn_key_permissions(key_file, problem);
    EVP_PKEY_free(key);
    X509_free(leaf);
    return e;
}

static mk_err reuse_keypair(struct mk_tls_context *c, const struct mk_tls_context *from,
                            const struct mk_tls_loaded_keypair *s, struct mk_tls_settings_error *problem)
{
    mk_err e = check_certificates(s->file, s->leaf, s->chain, problem);
    if (!e)
        e = use_keypair(c, s->file, s->file, s->leaf, s->chain, s->key, problem);
    if (!e)
        e = mk_tls_ocsp_staple_copy(c, from, s->leaf);
    return e ? e : store_keypair(c, s->file, s->leaf, s->chain, s->key);
}

static mk_err reuse_kept_keypair(struct mk_tls_context *c, const struct mk_tls_keypair *pair,
                                 struct mk_tls_settings_error *problem)
{
    const struct mk_tls_loaded_keypair *s = mk_tls_loaded_keypair_find(pair->kept_by, pair->certificate);
    return s ? reuse_keypair(c, pair->kept_by, s, problem) : -ENOENT;
}

mk_err mk_tls_keypair_reuse_others(struct mk_tls_context *c, const struct mk_tls_context *from,
                                   struct mk_tls_settings_error *problem)
{
    mk_err e = 0;
    for (size_t i = 0; i < from->n_sources && !e; i++)
        if (!mk_tls_loaded_keypair_has_key_type(c, from->sources[i].leaf))
            e = reuse_keypair(c, from, &from->sources[i], problem);
    return e;
}

mk_err mk_tls_keypair_load(struct mk_tls_context *c, const struct mk_tls_keypair *pair,
                           struct mk_tls_settings_error *problem)
{
    if (pair->kept_by)
        return reuse_kept_keypair(c, pair, problem);
    STACK_OF(X509) *chain = sk_X509_new_null();
    mk_err e = chain ? load_keypair(c, pair, chain, problem) : -ENOMEM;
    sk_X509_pop_free(chain, X509_free);
    return e;
}

mk_err mk_tls_keypair_read(const char *file, struct mk_tls_loaded_keypair *out)
{
    const struct mk_tls_keypair pair = {.certificate = file, .from_plugin = true};
    struct mk_tls_settings_error unheard = {0};
    *out = (struct mk_tls_loaded_keypair){.chain = sk_X509_new_null()};
    mk_err e = out->chain ? read_cert_chain(&pair, &out->leaf, out->chain, &unheard) : -ENOMEM;
    if (!e)
        e = read_private_key(file, &pair, &out->key, &unheard);
    if (!e && !X509_check_private_key(out->leaf, out->key))
        e = -EINVAL;
    if (e)
        mk_tls_loaded_keypair_free(out);
    ERR_clear_error();
    return e;
}

mk_err mk_tls_keypair_use_for_conn(SSL *ssl, const char *file)
{
    struct mk_tls_loaded_keypair pair;
    mk_err e = mk_tls_keypair_read(file, &pair);
    if (e)
        return e;
    if (!SSL_use_certificate(ssl, pair.leaf) || !SSL_use_PrivateKey(ssl, pair.key))
        e = -EINVAL;
    mk_tls_loaded_keypair_free(&pair);
    ERR_clear_error();
    return e;
}
