/* SPDX-License-Identifier: Apache-2.0 */
#include "cert.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "jws.h"

enum { CHAIN_MAX = 16, NAMES_TEXT = ACME_NAMES_MAX * 260, DIGEST = 32, WEEK_S = 7 * 86400 };

/* ---- Names ---- */

size_t acme_name_address(const char *name, unsigned char address[16])
{
    unsigned char own[16];
    unsigned char *to = address ? address : own;
    if (inet_pton(AF_INET, name, to) == 1)
        return 4;
    return inet_pton(AF_INET6, name, to) == 1 ? 16 : 0;
}

void acme_name_sni(const char *name, char *buf, size_t size)
{
    unsigned char a[16];
    size_t n = acme_name_address(name, a);
    struct mk_buf text = mk_buf_fixed(buf, size - 1);
    for (size_t i = n; i-- > 0;)
        if (n == 4)
            mk_buf_addf(&text, "%u.", a[i]);
        else
            mk_buf_addf(&text, "%x.%x.", a[i] & 15u, a[i] >> 4);
    mk_buf_add(&text, n == 4 ? MK_STR("in-addr.arpa") : n ? MK_STR("ip6.arpa") : mk_str_from_c(name));
    buf[text.len] = '\0';
}

/* ---- Extensions ---- */

static bool push_extension(STACK_OF(X509_EXTENSION) * list, X509_EXTENSION *e)
{
    if (e && sk_X509_EXTENSION_push(list, e) > 0)
        return true;
    X509_EXTENSION_free(e);
    return false;
}

/* Names contain only letters, digits, `-`, dots and a leading `*`, so they need no escaping here. */
static X509_EXTENSION *make_san_extension(const char *const *names, size_t n)
{
    struct mk_buf text = mk_buf_growing(NAMES_TEXT);
    for (size_t i = 0; i < n; i++)
        mk_buf_addf(&text, "%s%s:%s", i ? "," : "", acme_name_address(names[i], NULL) ? "IP" : "DNS",
                    names[i]);
    mk_buf_add_char(&text, '\0');
    X509_EXTENSION *e = text.failed ? NULL : X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text.p);
    mk_buf_free(&text);
    return e;
}

/* ---- Request ---- */

static bool add_san_to_csr(X509_REQ *r, const struct acme_cert_spec *spec)
{
    STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
    bool ok = list && push_extension(list, make_san_extension(spec->names, spec->n_names)) &&
              X509_REQ_add_extensions(r, list);
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
    return ok;
}

bool acme_cert_write_csr(struct mk_buf *out, EVP_PKEY *key, const struct acme_cert_spec *spec)
{
    unsigned char *der = NULL;
    X509_REQ *r = X509_REQ_new();
    bool ok = r && X509_REQ_set_version(r, X509_REQ_VERSION_1) && X509_REQ_set_pubkey(r, key) &&
              add_san_to_csr(r, spec) && X509_REQ_sign(r, key, EVP_sha256()) > 0;
    int len = ok ? i2d_X509_REQ(r, &der) : -1;
    if (len > 0)
        mk_buf_add(out, mk_str_of((char *)der, (size_t)len));
    OPENSSL_free(der);
    X509_REQ_free(r);
    return len > 0 && !out->failed;
}

/* ---- Check ---- */

static bool parse_asn1_time(const ASN1_TIME *t, int64_t *out)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm))
        return false;
    *out = timegm(&tm);
    return true;
}

static bool has_wildcard_name(X509 *leaf, const char *name)
{
    GENERAL_NAMES *list = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(list) && !found; i++) {
        const GENERAL_NAME *each = sk_GENERAL_NAME_value(list, i);
        if (each->type == GEN_DNS)
            found = mk_str_eq_nocase(mk_str_of((const char *)ASN1_STRING_get0_data(each->d.dNSName),
                                               (size_t)ASN1_STRING_length(each->d.dNSName)),
                                     mk_str_from_c(name));
    }
    GENERAL_NAMES_free(list);
    return found;
}

static bool covers_name(X509 *leaf, const char *name)
{
    if (acme_name_address(name, NULL))
        return X509_check_ip_asc(leaf, name, 0) == 1;
    if (strncmp(name, "*.", 2) == 0) /* X509_check_host() takes no wildcards */
        return has_wildcard_name(leaf, name);
    return X509_check_host(leaf, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static bool check_leaf(X509 *leaf, const EVP_PKEY *key, const struct acme_cert_spec *spec,
                       struct acme_validity *life, struct acme_error *f)
{
    if (EVP_PKEY_eq(X509_get0_pubkey(leaf), key) != 1)
        return acme_error_set(f, "certificate and key do not match");
    for (size_t i = 0; i < spec->n_names; i++)
        if (!covers_name(leaf, spec->names[i]))
            return acme_error_set(f, "the certificate does not cover the name %s", spec->names[i]);
    if (!parse_asn1_time(X509_get0_notBefore(leaf), &life->from) ||
        !parse_asn1_time(X509_get0_notAfter(leaf), &life->to) || life->to <= life->from)
        return acme_error_set(f, "the certificate has no valid lifetime");
    return true;
}

/* Prevents OpenSSL from prompting for a password. */
static int refuse_password_prompt(char *buf, int cap, int for_writing, void *unused)
{
    (void)buf, (void)cap, (void)for_writing, (void)unused;
    return -1;
}

/* Reads all certificates. Returns their number, or -1 if one is damaged. */
static int count_chain_certs(BIO *b)
{
    int n = 0;
    X509 *x;
    for (; (x = PEM_read_bio_X509(b, NULL, refuse_password_prompt, NULL)); n++)
        X509_free(x);
    unsigned long e = ERR_peek_last_error();
    ERR_clear_error();
    return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE ? n : -1;
}

bool acme_cert_check(mk_str pem, const EVP_PKEY *key, const struct acme_cert_spec *spec,
                     struct acme_validity *life, struct acme_error *f)
{
    BIO *b = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    X509 *leaf = b ? PEM_read_bio_X509(b, NULL, refuse_password_prompt, NULL) : NULL;
    int rest = leaf ? count_chain_certs(b) : -1;
    bool ok =
        rest >= 0 && rest <= CHAIN_MAX
            ? check_leaf(leaf, key, spec, life, f)
            : acme_error_set(f, "invalid certificate chain: %s",
                             leaf ? "a certificate after the first is damaged" : "no certificate found");
    ERR_clear_error();
    X509_free(leaf);
    BIO_free(b);
    return ok;
}

void acme_cert_validity(mk_str pem, struct acme_validity *life)
{
    BIO *b = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    X509 *leaf = b ? PEM_read_bio_X509(b, NULL, refuse_password_prompt, NULL) : NULL;
    if (!leaf || !parse_asn1_time(X509_get0_notBefore(leaf), &life->from) ||
        !parse_asn1_time(X509_get0_notAfter(leaf), &life->to))
        *life = (struct acme_validity){0};
    ERR_clear_error();
    X509_free(leaf);
    BIO_free(b);
}

/* ---- ID ---- */

/* Writes the certificate's serial number as the bytes of its DER encoding, which begins with 0 if it would look
 * negative otherwise. */
static bool write_serial(struct mk_buf *out, const X509 *x)
{
    unsigned char *der = NULL;
    int len = i2d_ASN1_INTEGER(X509_get0_serialNumber(x), &der);
    bool ok = len > 2 && der[1] == len - 2; /* tag and length; longer numbers than 127 bytes are invalid */
    if (ok)
        acme_base64url_encode(out, mk_str_of((const char *)der + 2, (size_t)len - 2));
    OPENSSL_free(der);
    return ok;
}

void acme_cert_id(mk_str pem, char id[ACME_CERT_ID_MAX])
{
    struct mk_buf out = mk_buf_fixed(id, ACME_CERT_ID_MAX - 1);
    BIO *b = pem.len <= INT_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    X509 *x = b ? PEM_read_bio_X509(b, NULL, refuse_password_prompt, NULL) : NULL;
    const ASN1_OCTET_STRING *key = x ? X509_get0_authority_key_id(x) : NULL;
    bool ok = key && ASN1_STRING_length(key) > 0;
    if (ok)
        acme_base64url_encode(
            &out, mk_str_of((const char *)ASN1_STRING_get0_data(key), (size_t)ASN1_STRING_length(key)));
    mk_buf_add_char(&out, '.');
    ok = ok && write_serial(&out, x) && !out.failed;
    id[ok ? out.len : 0] = '\0';
    ERR_clear_error();
    X509_free(x);
    BIO_free(b);
}

/* ---- tls-alpn-01 ---- */

/* The digest is an OCTET STRING inside the OCTET STRING of the extension's value (RFC 8737, section 3). */
static X509_EXTENSION *make_acme_id_extension(const char digest[DIGEST])
{
    unsigned char der[2 + DIGEST] = {V_ASN1_OCTET_STRING, DIGEST};
    memcpy(der + 2, digest, DIGEST);
    ASN1_OBJECT *id = OBJ_txt2obj("1.3.6.1.5.5.7.1.31", 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    X509_EXTENSION *e = NULL;
    if (id && value && ASN1_OCTET_STRING_set(value, der, sizeof der))
        e = X509_EXTENSION_create_by_OBJ(NULL, id, 1, value);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(id);
    return e;
}

static bool add_extension(X509 *x, X509_EXTENSION *e)
{
    bool ok = e && X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_common_name(X509 *x)
{
    X509_NAME *n = X509_get_subject_name(x);
    return X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)"ACME", -1, -1, 0) &&
           X509_set_issuer_name(x, n);
}

static X509 *make_tls_alpn_cert(EVP_PKEY *key, const char *name, const char digest[DIGEST])
{
    X509 *x = X509_new();
    if (x && X509_set_version(x, X509_VERSION_3) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1) &&
        set_common_name(x) && X509_gmtime_adj(X509_getm_notBefore(x), -WEEK_S) &&
        X509_gmtime_adj(X509_getm_notAfter(x), WEEK_S) && X509_set_pubkey(x, key) &&
        add_extension(x, make_san_extension(&name, 1)) && add_extension(x, make_acme_id_extension(digest)) &&
        X509_sign(x, key, EVP_sha256()))
        return x;
    X509_free(x);
    return NULL;
}

static bool write_cert_pem(struct mk_buf *out, X509 *x)
{
    char *text;
    BIO *b = BIO_new(BIO_s_mem());
    bool ok = b && PEM_write_bio_X509(b, x);
    if (ok) {
        long len = BIO_get_mem_data(b, &text);
        mk_buf_add(out, mk_str_of(text, (size_t)len));
    }
    BIO_free(b);
    return ok;
}

bool acme_cert_write_tls_alpn(struct mk_buf *out, const char *name, const char digest[DIGEST])
{
    EVP_PKEY *key = acme_key_new("ecdsa");
    X509 *x = key ? make_tls_alpn_cert(key, name, digest) : NULL;
    bool ok = x && write_cert_pem(out, x) && acme_key_write_pem(key, out);
    X509_free(x);
    EVP_PKEY_free(key);
    return ok && !out->failed;
}
