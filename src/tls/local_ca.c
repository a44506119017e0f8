/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/local_ca.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "base/mem.h"
#include "tls/file.h"

enum {
    DAY_S = 24 * 60 * 60,
    EARLIER_S = 60 * 60, /* tolerates clients whose clocks are slow */
    AUTHORITY_DAYS = MK_TLS_LOCAL_CA_YEARS * 365 + 2,
    SERIAL_BITS = 159, /* 20 bytes, and never negative */
    NAME_PART = 64,    /* X.509 limit for a common name */
    EXTENSION_MAX = 48 * 1024,
    PEM_MAX = 64 * 1024,
};

struct mk_tls_local_ca {
    EVP_PKEY *key;
    X509 *certificate;
};

/* ---- Names ---- */

static bool is_ip_address(const char *name)
{
    uint8_t ip[16];
    return inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1;
}

/* Is it a host name? Characters that have a meaning in OpenSSL's extension syntax are not allowed. */
static bool is_hostname(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!mk_char_is_alpha(name[i]) && !mk_char_is_digit(name[i]) && !strchr("-._", name[i]))
            return false;
    return len > 0 && len <= 253 && name[0] != '.' && name[len - 1] != '.';
}

static bool append_name(struct mk_buf *out, const char *before, const char *name)
{
    bool address = is_ip_address(name);
    if (!address && !is_hostname(name))
        return false;
    mk_buf_addf(out, ",%s%s:%s", before, address ? "IP" : "DNS", name);
    return true;
}

/* A machine's name without a dot may also be a top-level domain, such as `dev`, `app` or `box`: permits that
 * name itself, but no subdomains. */
static void append_permitted_name(struct mk_buf *out, const char *name)
{
    bool known = strcmp(name, "localhost") == 0 || mk_str_ends(mk_str_from_c(name), MK_STR(".local"));
    bool address = is_ip_address(name);
    if (!address && !known && append_name(out, "permitted;", name) && !strchr(name, '.'))
        mk_buf_addf(out, ",excluded;DNS:.%s", name);
    else if (address && !strchr(name, ':')) /* IPv4 only: add_name_constraints() permits all IPv6 addresses,
                                             * because providers change IPv6 prefixes */
        mk_buf_addf(out, ",permitted;IP:%s/255.255.255.255", name);
}

/* ---- Parts of a certificate ---- */

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(x, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_random_serial(X509 *x)
{
    BIGNUM *n = BN_new();
    bool ok = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
    BN_free(n);
    return ok;
}

/* Passes the time as text: with a 32-bit long, the library's time_t may differ from ours. */
static bool set_asn1_time(ASN1_TIME *t, int64_t when)
{
    char text[sizeof "YYYYMMDDhhmmssZ"];
    struct tm tm;
    return gmtime_r(&(time_t){(time_t)when}, &tm) && strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &tm) > 0 &&
           ASN1_TIME_set_string_X509(t, text) == 1;
}

static bool set_validity(X509 *x, int64_t from, int64_t to)
{
    return set_asn1_time(X509_getm_notBefore(x), from) && set_asn1_time(X509_getm_notAfter(x), to);
}

static int64_t asn1_time_seconds(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* Creates a certificate for that key, without names and extensions. */
static X509 *new_certificate(EVP_PKEY *key, int64_t from, int64_t to)
{
    X509 *x = X509_new();
    if (x && X509_set_version(x, X509_VERSION_3) == 1 && set_random_serial(x) && set_validity(x, from, to) &&
        X509_set_pubkey(x, key) == 1)
        return x;
    X509_free(x);
    return NULL;
}

/* ---- PEM ---- */

/* Copies the contents of the BIO to our buffer; OpenSSL wipes its own copy, which is in secure memory. */
static mk_err append_bio(BIO *bio, struct mk_buf *pem)
{
    char *p = NULL;
    long len = BIO_get_mem_data(bio, &p);
    if (len <= 0)
        return -EIO;
    mk_buf_add(pem, mk_str_of(p, (size_t)len));
    return pem->failed ? -EFBIG : 0;
}

static mk_err append_pem(const X509 *x, const EVP_PKEY *key, struct mk_buf *pem)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    bool ok = bio && (!key || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1) &&
              PEM_write_bio_X509(bio, x) == 1;
    mk_err e = ok ? append_bio(bio, pem) : -EIO;
    BIO_free(bio);
    return e;
}

static EVP_PKEY *parse_key(mk_str pem)
{
    BIO *bio = pem.len <= PEM_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, mk_tls_file_refuse_password_cb, NULL) : NULL;
    BIO_free(bio);
    return key;
}

static X509 *parse_certificate(mk_str pem)
{
    BIO *bio = pem.len <= PEM_MAX ? BIO_new_mem_buf(pem.p, (int)pem.len) : NULL;
    X509 *x = bio ? PEM_read_bio_X509(bio, NULL, mk_tls_file_refuse_password_cb, NULL) : NULL;
    BIO_free(bio);
    return x;
}

/* Clears OpenSSL's error queue, so that a later call does not report this failure. */
static mk_err clear_openssl_errors(mk_err e)
{
    ERR_clear_error();
    return e;
}

/* ---- Creating a CA ---- */

static bool set_subject(X509 *x, mk_str host_name)
{
    char text[NAME_PART + 1];
    struct mk_buf b = mk_buf_fixed(text, sizeof text - 1);
    X509_NAME *name = X509_get_subject_name(x);
    mk_buf_add(&b, MK_STR("Monkey on "));
    for (size_t i = 0; i < host_name.len && b.len < b.cap; i++)
        mk_buf_add_char(&b, host_name.p[i] > ' ' && host_name.p[i] < 0x7f ? host_name.p[i] : '?');
    const unsigned char *p = (const unsigned char *)text;
    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Monkey local CA", -1,
                                      -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, p, (int)b.len, -1, 0) == 1 &&
           X509_set_issuer_name(x, name) == 1;
}

/* Limits the damage of a stolen key: it cannot issue certificates for other names. */
static bool add_name_constraints(X509 *x, const struct mk_tls_names *names)
{
    struct mk_buf text = mk_buf_growing(EXTENSION_MAX);
    mk_buf_add(&text, MK_STR("critical,permitted;DNS:localhost,permitted;DNS:local,"
                             "permitted;IP:127.0.0.0/255.0.0.0,permitted;IP:10.0.0.0/255.0.0.0,"
                             "permitted;IP:172.16.0.0/255.240.0.0,permitted;IP:192.168.0.0/255.255.0.0,"
                             "permitted;IP:169.254.0.0/255.255.0.0,permitted;IP:100.64.0.0/255.192.0.0,"
                             "permitted;IP:::/::"));
    for (size_t i = 0; i < names->n; i++)
        append_permitted_name(&text, names->at[i]);
    mk_buf_add(&text, mk_str_of("", 1));
    bool ok = !text.failed && add_extension(x, x, NID_name_constraints, text.p);
    mk_buf_free(&text);
    return ok;
}

static mk_err create_ca(mk_str host_name, const struct mk_tls_names *names, int64_t now, struct mk_buf *pem)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = key ? new_certificate(key, now - EARLIER_S, now + (int64_t)AUTHORITY_DAYS * DAY_S) : NULL;
    bool ok = x && set_subject(x, host_name) &&
              add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
              add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              add_extension(x, x, NID_ext_key_usage, "serverAuth") &&
              add_extension(x, x, NID_subject_key_identifier, "hash") && add_name_constraints(x, names) &&
              X509_sign(x, key, EVP_sha256()) > 0;
    mk_err e = ok ? append_pem(x, key, pem) : -EIO;
    X509_free(x);
    EVP_PKEY_free(key);
    return clear_openssl_errors(e);
}

/* ---- Loading a CA ---- */

static const char *check_ca(X509 *x, const EVP_PKEY *key)
{
    uint32_t usage = X509_get_key_usage(x);
    if (X509_check_private_key(x, key) != 1)
        return "its key does not match its certificate";
    if (X509_check_ca(x) != 1 || !(usage & KU_KEY_CERT_SIGN))
        return "its certificate is not a CA certificate";
    if (X509_self_signed(x, 1) != 1)
        return "its certificate is signed by another CA";
    return NULL;
}

static void close_ca(struct mk_tls_local_ca *a)
{
    if (!a)
        return;
    EVP_PKEY_free(a->key);
    X509_free(a->certificate);
    mk_mem_free(a);
}

static mk_err open_ca(mk_str pem, struct mk_tls_local_ca **out, const char **error)
{
    struct mk_tls_local_ca *a = mk_mem_zalloc(1, sizeof *a);
    *out = NULL;
    *error = "out of memory";
    if (!a)
        return -ENOMEM;
    a->key = parse_key(pem);
    a->certificate = parse_certificate(pem);
    *error = !a->key           ? "it contains no readable private key"
             : !a->certificate ? "it contains no readable certificate"
                               : check_ca(a->certificate, a->key);
    if (*error) {
        close_ca(a);
        return clear_openssl_errors(-EINVAL);
    }
    *out = a;
    return clear_openssl_errors(0);
}

static void write_fingerprint(const X509 *x, char *buf, size_t size)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct mk_buf b = mk_buf_fixed(buf, size - 1);
    if (X509_digest(x, EVP_sha256(), hash, &n) != 1)
        n = 0;
    for (unsigned i = 0; i < n; i++)
        mk_buf_addf(&b, i ? ":%02X" : "%02X", hash[i]);
    buf[b.len] = '\0';
}

static void get_ca_info(const struct mk_tls_local_ca *a, struct mk_tls_local_ca_info *out)
{
    *out = (struct mk_tls_local_ca_info){.since = asn1_time_seconds(X509_get0_notBefore(a->certificate)),
                                         .until = asn1_time_seconds(X509_get0_notAfter(a->certificate))};
    const X509_NAME *name = X509_get_subject_name(a->certificate);
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    const ASN1_STRING *cn = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    struct mk_buf b = mk_buf_fixed(out->name, sizeof out->name - 1);
    for (int i = 0; cn && i < ASN1_STRING_length(cn) && b.len < b.cap; i++) {
        char c = (char)ASN1_STRING_get0_data(cn)[i];
        mk_buf_add_char(&b, c >= ' ' && c < 0x7f ? c : '?');
    }
    write_fingerprint(a->certificate, out->fingerprint, sizeof out->fingerprint);
}

static mk_err write_ca_certificate(const struct mk_tls_local_ca *a, struct mk_buf *pem)
{
    return clear_openssl_errors(append_pem(a->certificate, NULL, pem));
}

/* ---- Issuing ---- */

static bool add_alt_names(X509 *x, const struct mk_tls_names *names)
{
    struct mk_buf text = mk_buf_growing(EXTENSION_MAX);
    bool ok = names->n > 0;
    mk_buf_add(&text, MK_STR("critical")); /* critical, because the subject is empty (RFC 5280, section
                                            * 4.2.1.6) */
    for (size_t i = 0; ok && i < names->n; i++)
        ok = append_name(&text, "", names->at[i]);
    mk_buf_add(&text, mk_str_of("", 1));
    ok = ok && !text.failed && add_extension(x, NULL, NID_subject_alt_name, text.p);
    mk_buf_free(&text);
    return ok;
}

/* The leaf must be complete, because OpenSSL caches its extensions here. */
static bool ca_permits_leaf(const struct mk_tls_local_ca *a, X509 *leaf)
{
    (void)X509_check_purpose(leaf, -1, 0); /* caches the names, even of an unsigned certificate */
    NAME_CONSTRAINTS *nc = X509_get_ext_d2i(a->certificate, NID_name_constraints, NULL, NULL);
    bool ok = !nc || NAME_CONSTRAINTS_check(leaf, nc) == X509_V_OK;
    NAME_CONSTRAINTS_free(nc);
    return ok;
}

static bool ca_may_certify(const struct mk_tls_local_ca *a, const char *name)
{
    X509 *x = X509_new();
    bool ok = x && add_alt_names(x, &(struct mk_tls_names){.at = &name, .n = 1}) && ca_permits_leaf(a, x);
    X509_free(x);
    (void)clear_openssl_errors(0);
    return ok;
}

static mk_err issue_leaf(const struct mk_tls_local_ca *a, const struct mk_tls_names *names, int64_t now,
                         struct mk_buf *pem)
{
    int64_t end = now - EARLIER_S + (int64_t)MK_TLS_LEAF_DAYS * DAY_S;
    int64_t last = asn1_time_seconds(X509_get0_notAfter(a->certificate));
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = key ? new_certificate(key, now - EARLIER_S, end < last ? end : last) : NULL;
    X509 *by = a->certificate;
    bool ok = x && X509_set_issuer_name(x, X509_get_subject_name(by)) == 1 && add_alt_names(x, names) &&
              add_extension(x, by, NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(x, by, NID_key_usage, "critical,digitalSignature") &&
              add_extension(x, by, NID_ext_key_usage, "serverAuth") &&
              add_extension(x, by, NID_subject_key_identifier, "hash") &&
              add_extension(x, by, NID_authority_key_identifier, "keyid:always") &&
              X509_sign(x, a->key, EVP_sha256()) > 0 && ca_permits_leaf(a, x);
    mk_err e = ok ? append_pem(x, key, pem) : -EIO;
    X509_free(x);
    EVP_PKEY_free(key);
    return clear_openssl_errors(e);
}

/* ---- Checking issued certificates ---- */

static bool certificate_has_name(X509 *x, const char *name)
{
    if (is_ip_address(name))
        return X509_check_ip_asc(x, name, 0) == 1;
    return X509_check_host(x, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static const char *leaf_renewal_by_time(const X509 *x, int64_t now)
{
    int64_t since = asn1_time_seconds(X509_get0_notBefore(x)),
            until = asn1_time_seconds(X509_get0_notAfter(x));
    if (now < since)
        return "it is not valid yet";
    return now >= since + (until - since) / 3 * 2 ? "two thirds of its lifetime have passed" : NULL;
}

static const char *leaf_renewal_reason(const struct mk_tls_local_ca *a, X509 *x, const EVP_PKEY *key,
                                       const struct mk_tls_names *names, int64_t now)
{
    if (!x || !key || X509_check_private_key(x, key) != 1)
        return "it is unreadable";
    if (X509_check_issued(a->certificate, x) != X509_V_OK || X509_verify(x, a->key) != 1)
        return "it is from another CA";
    for (size_t i = 0; i < names->n; i++)
        if (!certificate_has_name(x, names->at[i]))
            return "this machine has a new name or address";
    return leaf_renewal_by_time(x, now);
}

static const char *leaf_renewal_is_due(const struct mk_tls_local_ca *a, mk_str pem,
                                       const struct mk_tls_names *names, int64_t now)
{
    EVP_PKEY *key = parse_key(pem);
    X509 *x = parse_certificate(pem);
    const char *error = leaf_renewal_reason(a, x, key, names, now);
    X509_free(x);
    EVP_PKEY_free(key);
    (void)clear_openssl_errors(0);
    return error;
}

const struct mk_tls_local_ca_ops mk_tls_local_ca_ops_openssl = {
    .make = create_ca,
    .open = open_ca,
    .close = close_ca,
    .facts = get_ca_info,
    .certificate = write_ca_certificate,
    .may = ca_may_certify,
    .issue = issue_leaf,
    .is_due = leaf_renewal_is_due,
};
