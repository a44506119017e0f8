/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/ocsp_staple.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <time.h>

#include "tls/ex_data.h"
#include "tls/file.h"

enum { STALE_S = 60 }; /* clock skew */

static int64_t generalized_time_seconds(const ASN1_GENERALIZEDTIME *t)
{
    struct tm tm;
    return t && ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) : INT64_MAX;
}

/* Does the response cover the certificate? Sets *until to its nextUpdate time. */
static bool find_cert_status(OCSP_BASICRESP *basic, X509 *certificate, int64_t *until)
{
    const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *one = OCSP_resp_get0(basic, i);
        ASN1_GENERALIZEDTIME *next = NULL;
        ASN1_INTEGER *about = NULL;
        (void)OCSP_id_get0_info(NULL, NULL, NULL, &about,
                                (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(one));
        if (!about || ASN1_INTEGER_cmp(about, serial) != 0)
            continue;
        (void)OCSP_single_get0_status(one, NULL, NULL, NULL, &next);
        *until = generalized_time_seconds(next);
        return true;
    }
    return false;
}

static mk_err check_ocsp_response(OCSP_RESPONSE *r, X509 *certificate, const char *file, int64_t *until,
                                  struct mk_tls_settings_error *problem)
{
    OCSP_BASICRESP *basic =
        OCSP_response_status(r) == OCSP_RESPONSE_STATUS_SUCCESSFUL ? OCSP_response_get1_basic(r) : NULL;
    if (!basic)
        return mk_tls_settings_error_set(problem, file,
                                         "the OCSP response contains no certificate status: %s",
                                         OCSP_response_status_str(OCSP_response_status(r)));
    bool fits = find_cert_status(basic, certificate, until);
    OCSP_BASICRESP_free(basic);
    if (!fits)
        return mk_tls_settings_error_set(problem, file, "the OCSP response is for another certificate");
    if (*until < (int64_t)time(NULL))
        mk_tls_settings_error_warn(problem, file, "the OCSP response is out of date and will not be sent");
    return 0;
}

static mk_err add_staple(struct mk_tls_context *c, X509 *certificate, OCSP_RESPONSE *r, int64_t until)
{
    struct mk_tls_ocsp_staple *s = &c->staples[c->n_staples];
    int len = i2d_OCSP_RESPONSE(r, &s->response);
    if (len <= 0)
        return -ENOMEM;
    s->len = (size_t)len;
    s->until = until;
    s->certificate = certificate;
    c->n_staples++;
    return 0;
}

mk_err mk_tls_ocsp_staple_load(struct mk_tls_context *c, X509 *certificate, const char *file,
                               struct mk_tls_settings_error *problem)
{
    BIO *b;
    int64_t until = 0;
    if (!file)
        return 0;
    mk_err e = mk_tls_file_read_to_bio(file, false, "OCSP response", &b, problem);
    if (e)
        return e;
    OCSP_RESPONSE *r = d2i_OCSP_RESPONSE_bio(b, NULL);
    BIO_free(b);
    if (!r)
        return mk_tls_settings_error_set(problem, file, "it contains no OCSP response: expected DER");
    e = check_ocsp_response(r, certificate, file, &until, problem);
    if (!e)
        e = add_staple(c, certificate, r, until);
    OCSP_RESPONSE_free(r);
    return e;
}

mk_err mk_tls_ocsp_staple_copy(struct mk_tls_context *c, const struct mk_tls_context *from, X509 *certificate)
{
    for (size_t i = 0; i < from->n_staples; i++) {
        struct mk_tls_ocsp_staple s = from->staples[i];
        if (s.certificate != certificate)
            continue;
        s.response = OPENSSL_memdup(s.response, s.len);
        if (!s.response)
            return -ENOMEM;
        c->staples[c->n_staples++] = s;
    }
    return 0;
}

int mk_tls_ocsp_staple_status_cb(SSL *ssl, void *arg)
{
    const struct mk_tls_context *c = mk_tls_ex_data_get_context(SSL_get_SSL_CTX(ssl));
    const X509 *chosen = SSL_get_certificate(ssl);
    (void)arg;
    for (size_t i = 0; c && i < c->n_staples; i++) {
        const struct mk_tls_ocsp_staple *s = &c->staples[i];
        if (s->certificate != chosen || s->until + STALE_S < (int64_t)time(NULL))
            continue;
        unsigned char *copy = OPENSSL_memdup(s->response, s->len); /* owned by the connection */
        if (!copy)
            break;
        (void)SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)s->len);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}
