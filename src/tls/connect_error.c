/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/connect_error.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/mem.h"
#include "tls/bio.h"
#include "tls/conn_info.h"

enum {
    TEXT_MAX = 1024,
    NAME_SHOWN = 160, /* text from servers is truncated */
    NAMES_SHOWN = 400,
    DATE_MAX = 32,
};

/* Copies the text, so that it lives as long as the stream. */
static void set_reason_text(struct mk_tls *t, struct mk_buf *text, const char *in_short)
{
    mk_buf_add_char(text, '\0');
    t->why = in_short;
    if (text->failed || !(t->call->reason_text = mk_mem_alloc(text->len)))
        return;
    memcpy(t->call->reason_text, text->p, text->len);
    t->why = t->call->reason_text;
}

/* ---- Certificates ---- */

static void append_name(struct mk_buf *out, const X509_NAME *name)
{
    char buf[MK_TLS_CONN_INFO_NAME_MAX];
    mk_str text = mk_tls_conn_info_format_name(name, buf);
    mk_log_escape_to(out, text.len ? text : MK_STR("(no name)"), out->len + NAME_SHOWN);
}

static void append_date(struct mk_buf *out, const ASN1_TIME *t)
{
    char date[DATE_MAX];
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) && strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &tm))
        mk_buf_addf(out, "%s", date);
}

static mk_str general_name_text(const GENERAL_NAME *name, char buf[INET6_ADDRSTRLEN])
{
    int kind;
    const ASN1_STRING *s = GENERAL_NAME_get0_value(name, &kind);
    int len = kind == GEN_DNS || kind == GEN_IPADD ? ASN1_STRING_length(s) : 0;
    const unsigned char *p = len > 0 ? ASN1_STRING_get0_data(s) : NULL;
    if (kind == GEN_DNS && p)
        return mk_str_of((const char *)p, (size_t)len);
    if (p && (len == 4 || len == 16) && inet_ntop(len == 4 ? AF_INET : AF_INET6, p, buf, INET6_ADDRSTRLEN))
        return mk_str_from_c(buf);
    return mk_str_of(NULL, 0);
}

/* Appends the names of the certificate, or the name of its subject if it has none. */
static void append_cert_names(struct mk_buf *out, const X509 *x)
{
    char buf[INET6_ADDRSTRLEN];
    const size_t begin = out->len, end = begin + NAMES_SHOWN;
    GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        mk_str text = general_name_text(sk_GENERAL_NAME_value(all, i), buf);
        if (!text.len)
            continue;
        if (out->len + NAME_SHOWN > end) {
            mk_buf_add(out, MK_STR(" and others"));
            break;
        }
        if (out->len > begin)
            mk_buf_add(out, MK_STR(", "));
        mk_log_escape_to(out, text, out->len + NAME_SHOWN);
    }
    GENERAL_NAMES_free(all);
    if (out->len == begin)
        append_name(out, X509_get_subject_name(x));
}

/* Explains that no trusted CA issued the certificate. */
static bool append_untrusted_reason(struct mk_buf *out, const X509 *x, int error)
{
    switch (error) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        mk_buf_add(out, MK_STR("its certificate "));
        append_name(out, X509_get_subject_name(x));
        mk_buf_add(out, MK_STR(" is self-signed and not trusted: add it to the file of trusted authorities"));
        return true;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        mk_buf_add(out, MK_STR("its certificate is from an authority that is not trusted, "));
        append_name(out, X509_get_issuer_name(x));
        mk_buf_add(
            out, MK_STR(": add that authority to the file of trusted authorities; or, if a trusted authority "
                        "has certified it, make the server send that certificate as well"));
        return true;
    default:
        return false;
    }
}

static void append_name_mismatch(struct mk_buf *out, const X509 *x, const struct mk_tls *t)
{
    mk_buf_add(out, MK_STR("its certificate is for "));
    append_cert_names(out, x);
    mk_buf_addf(out,
                ", not for %s: set the name to verify to a name in the certificate, or give the server a "
                "certificate for this name",
                t->call->name);
}

static void append_validity_reason(struct mk_buf *out, const X509 *x, bool has_ended)
{
    mk_buf_add(out, MK_STR("the certificate "));
    append_name(out, X509_get_subject_name(x));
    mk_buf_add(out, has_ended ? MK_STR(" expired on ") : MK_STR(" is not valid before "));
    append_date(out, has_ended ? X509_get0_notAfter(x) : X509_get0_notBefore(x));
    mk_buf_add(out, has_ended ? MK_STR(": the server needs a new one")
                              : MK_STR(": check the clocks of this machine and of the server"));
}

static void append_other_reason(struct mk_buf *out, const X509 *x, int error)
{
    mk_buf_add(out, MK_STR("OpenSSL rejects the certificate "));
    append_name(out, X509_get_subject_name(x));
    mk_buf_addf(out, ": %s", X509_verify_cert_error_string(error));
}

int mk_tls_connect_error_verify_cb(int ok, X509_STORE_CTX *ctx)
{
    char buf[TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *x = X509_STORE_CTX_get_current_cert(ctx);
    struct mk_tls *t = mk_tls_bio_stream(ssl);
    int error = X509_STORE_CTX_get_error(ctx);
    if (ok || t->why || !x)
        return ok;
    if (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH)
        append_name_mismatch(&text, x, t);
    else if (error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID)
        append_validity_reason(&text, x, error == X509_V_ERR_CERT_HAS_EXPIRED);
    else if (!append_untrusted_reason(&text, x, error))
        append_other_reason(&text, x, error);
    set_reason_text(t, &text, X509_verify_cert_error_string(error));
    return ok;
}

int mk_tls_connect_error_cert_cb(SSL *ssl, void *arg)
{
    (void)arg;
    mk_tls_bio_stream(ssl)->call->client_cert_requested = true;
    return 1;
}

/* ---- Other errors ---- */

#define NO_TLS ": it may expect connections without TLS"

static const char *explain_cert_request(const struct mk_tls *t)
{
    return SSL_get_certificate(t->ssl) ? NULL : "it requires a client certificate: set one that it accepts";
}

/* Explains OpenSSL's reason codes from a client's view. */
static const char *explain_ssl_reason(const struct mk_tls *t, int reason)
{
    switch (reason) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_UNKNOWN_PROTOCOL:
        return "its response is not TLS" NO_TLS;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return "it supports neither TLS 1.2 nor TLS 1.3";
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
        return "it does not support HTTP/1.1";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* in TLS 1.2, also sent if a required certificate is missing */
        return t->call->client_cert_requested ? explain_cert_request(t)
                                              : "it supports none of our ciphers, groups and signatures";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return explain_cert_request(t);
    default:
        return NULL;
    }
}

static bool is_about_client_cert(int reason)
{
    switch (reason) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

static void set_reason_from_error(struct mk_tls *t, unsigned long error)
{
    char buf[TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const char *plain = ERR_reason_error_string(error);
    int reason = ERR_GET_REASON(error);
    if (!plain)
        plain = "OpenSSL failed";
    if (reason == SSL_R_TLSV1_UNRECOGNIZED_NAME)
        mk_buf_addf(&text, "it has no certificate for the name %s", t->call->name);
    else if (t->call->client_cert_requested && is_about_client_cert(reason))
        mk_buf_addf(&text, "it rejects our client certificate: %s", plain);
    else
        mk_buf_addf(&text, "%s", plain);
    set_reason_text(t, &text, plain);
}

void mk_tls_connect_error_explain(struct mk_tls *t)
{
    unsigned long error = ERR_peek_last_error();
    if (t->why)
        return;
    if (error && ERR_GET_LIB(error) == ERR_LIB_SSL)
        t->why = explain_ssl_reason(t, ERR_GET_REASON(error));
    if (!t->why && error)
        set_reason_from_error(t, error);
    if (!t->why && !t->done)
        t->why = "it closed the connection during the handshake" NO_TLS;
    if (!t->why && t->ended)
        t->why = "it closed the connection without close_notify: the received data may be incomplete";
}
