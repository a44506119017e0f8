/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/x509_name.h"

mk_str mk_tls_x509_name_format(const X509_NAME *name, char buf[MK_TLS_X509_NAME_MAX])
{
    BIO *b = BIO_new(BIO_s_mem());
    mk_str text = {buf, 0};
    if (!b || X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0) {
        BIO_free(b);
        return mk_str_of(NULL, 0);
    }
    int n = BIO_read(b, buf, MK_TLS_X509_NAME_MAX);
    text.len = n > 0 ? (size_t)n : 0;
    bool whole = BIO_pending(b) == 0;
    BIO_free(b);
    return whole ? text : mk_str_of(NULL, 0);
}
