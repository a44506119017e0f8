/* SPDX-License-Identifier: Apache-2.0 */
/* Authorities to trust: those of a file, or those of the system. All are read at once, because workers cannot
 * open files of the system. */
#ifndef MK_TLS_TRUST_STORE_H
#define MK_TLS_TRUST_STORE_H

#include <openssl/x509.h>

#include "tls/settings_error.h"

/* Hands all certificates of a PEM file to `add`, which borrows them. `what` they are is for the problem. */
mk_err mk_tls_trust_store_read_file(const char *file, const char *what, mk_err (*add)(void *ctx, X509 *x),
                                    void *ctx, struct mk_tls_settings_error *problem);

/* Those of the file; NULL: those of the system, which all callers share. To be dropped. NULL: none, and
 * *problem says why. */
X509_STORE *mk_tls_trust_store_acquire(const char *file, struct mk_tls_settings_error *problem);
void mk_tls_trust_store_release(X509_STORE *store);

#endif
