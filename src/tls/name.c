/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/name.h"

mk_str mk_tls_name_write(const X509_NAME *name, char room[MK_TLS_NAME_MAX])
{
    BIO *b = BIO_new(BIO_s_mem());
    mk_str text = {room, 0};
    if (!b || X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0) {
        BIO_free(b);
        return mk_str_of(NULL, 0);
    }
    int n = BIO_read(b, room, MK_TLS_NAME_MAX);
    text.len = n > 0 ? (size_t)n : 0;
    bool whole = BIO_pending(b) == 0;
    BIO_free(b);
    return whole ? text : mk_str_of(NULL, 0);
}
