/* SPDX-License-Identifier: Apache-2.0 */
/* Trusted CAs from a file or from the system. All CAs are loaded in advance, because workers cannot open
 * system files. */
#ifndef MK_TLS_TRUST_STORE_H
#define MK_TLS_TRUST_STORE_H

#include <openssl/x509.h>

#include "tls/settings_error.h"

/* Passes all certificates of a PEM file to `add`, which borrows them. `what`: their purpose, for the
 * error. */
mk_err mk_tls_trust_store_read_file(const char *file, const char *what, mk_err (*add)(void *ctx, X509 *x),
                                    void *ctx, struct mk_tls_settings_error *problem);

/* Loads the CAs of the file, or (NULL) those of the system, which all callers share. Returns a reference that
 * the caller releases. NULL: error, with the reason in *problem. */
X509_STORE *mk_tls_trust_store_acquire(const char *file, struct mk_tls_settings_error *problem);
void mk_tls_trust_store_release(X509_STORE *store);

#endif
