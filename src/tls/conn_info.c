/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/conn_info.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <time.h>

#include "base/mem.h"
#include "tls/ex_data.h"

enum { SERIAL_MAX = 64, DIGEST = 32 };

struct mk_tls_client_cert_info {
    mk_str subject, issuer, serial, fingerprint, der;
    int64_t expires;
    char text[]; /* text of all members */
};

static mk_str format_hex(const unsigned char *p, size_t n, char *buf, size_t cap)
{
    n = mk_min(n, cap / 2);
    for (size_t i = 0; i < 2 * n; i++)
        buf[i] = "0123456789ABCDEF"[i % 2 ? p[i / 2] & 15 : p[i / 2] >> 4];
    return mk_str_of(buf, 2 * n);
}

static mk_str copy_text_to(mk_str text, char **at)
{
    char *to = *at;
    if (text.p)
        memcpy(to, text.p, text.len);
    *at += text.len;
    return mk_str_of(text.p ? to : NULL, text.len);
}

static mk_str encode_der(const X509 *x, char *at)
{
    unsigned char *end = (unsigned char *)at;
    int len = i2d_X509(x, &end);
    return mk_str_of(at, len > 0 ? (size_t)len : 0);
}

static struct mk_tls_client_cert_info *describe_certificate(const X509 *x)
{
    char subject[MK_TLS_CONN_INFO_NAME_MAX], issuer[MK_TLS_CONN_INFO_NAME_MAX], serial[2 * SERIAL_MAX],
        fingerprint[2 * DIGEST];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct tm tm;
    const ASN1_INTEGER *number = X509_get0_serialNumber(x);
    struct mk_tls_client_cert_info all = {
        .subject = mk_tls_conn_info_format_name(X509_get_subject_name(x), subject),
        .issuer = mk_tls_conn_info_format_name(X509_get_issuer_name(x), issuer),
        .serial = format_hex(ASN1_STRING_get0_data(number), (size_t)ASN1_STRING_length(number), serial,
                             sizeof serial),
    };
    if (X509_digest(x, EVP_sha256(), digest, &n))
        all.fingerprint = format_hex(digest, n, fingerprint, sizeof fingerprint);
    if (ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm))
        all.expires = (int64_t)timegm(&tm);
    int der_len = i2d_X509(x, NULL);
    struct mk_tls_client_cert_info *c =
        mk_mem_alloc(sizeof *c + all.subject.len + all.issuer.len + all.serial.len + all.fingerprint.len +
                     (der_len > 0 ? (size_t)der_len : 0));
    if (!c)
        return NULL;
    char *at = c->text;
    c->subject = copy_text_to(all.subject, &at);
    c->issuer = copy_text_to(all.issuer, &at);
    c->serial = copy_text_to(all.serial, &at);
    c->fingerprint = copy_text_to(all.fingerprint, &at);
    c->der = encode_der(x, at);
    c->expires = all.expires;
    return c;
}

/* Returns the information on the client's certificate, which is collected on first use. NULL: the client
 * presented no trusted certificate, or the peer is a server. */
static const struct mk_tls_client_cert_info *client_cert_info(struct mk_tls *t)
{
    X509 *x = t->call ? NULL : SSL_get0_peer_certificate(t->ssl);
    if (t->client_cert || !x || SSL_get_verify_result(t->ssl) != X509_V_OK)
        return t->client_cert;
    t->client_cert = describe_certificate(x);
    ERR_clear_error();
    return t->client_cert;
}

/* Absent: the key exchange used none, for example because a session of TLS 1.2 was resumed. */
static mk_str group_name(SSL *ssl)
{
    long id = SSL_get_negotiated_group(ssl);
    const char *name = id > 0 ? SSL_group_to_name(ssl, (int)id) : NULL;
    return mk_str_of(name, name ? strlen(name) : 0);
}

void mk_tls_conn_info_get(const struct mk_stream *s, struct mk_tls_conn_info *out)
{
    struct mk_tls *t = s->tls;
    const unsigned char *protocol;
    unsigned len;
    SSL_get0_alpn_selected(t->ssl, &protocol, &len);
    *out = (struct mk_tls_conn_info){
        .protocol = mk_str_of((const char *)protocol, len),
        .server_name = mk_str_from_c(SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name)),
        .version = mk_str_from_c(SSL_get_version(t->ssl)),
        .cipher = mk_str_from_c(SSL_get_cipher_name(t->ssl)),
        .group = group_name(t->ssl),
        .resumed = SSL_session_reused(t->ssl),
        .kernel = t->kernel,
        .context = mk_tls_ex_data_get_context(SSL_get_SSL_CTX(t->ssl)),
    };
    const struct mk_tls_client_cert_info *c = client_cert_info(t);
    if (!c)
        return;
    out->client_subject = c->subject;
    out->client_issuer = c->issuer;
    out->client_serial = c->serial;
    out->client_fingerprint = c->fingerprint;
    out->client_certificate = c->der;
    out->client_expires = c->expires;
}

mk_str mk_tls_conn_info_format_name(const X509_NAME *name, char buf[MK_TLS_CONN_INFO_NAME_MAX])
{
    BIO *b = BIO_new(BIO_s_mem());
    mk_str text = {buf, 0};
    if (!b || X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0) {
        BIO_free(b);
        return mk_str_of(NULL, 0);
    }
    int n = BIO_read(b, buf, MK_TLS_CONN_INFO_NAME_MAX);
    text.len = n > 0 ? (size_t)n : 0;
    bool whole = BIO_pending(b) == 0;
    BIO_free(b);
    return whole ? text : mk_str_of(NULL, 0);
}
