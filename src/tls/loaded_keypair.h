/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys as a context has loaded them: a later context takes them over when their files can no longer
 * be used. */
#ifndef MK_TLS_LOADED_KEYPAIR_H
#define MK_TLS_LOADED_KEYPAIR_H

#include "tls/context_type.h"

/* NULL: the context has loaded no certificate from that file. */
const struct mk_tls_loaded_keypair *mk_tls_loaded_keypair_find(const struct mk_tls_context *c,
                                                               const char *file);
/* True if the context has a certificate with the same kind of key. */
bool mk_tls_loaded_keypair_has_key_type(const struct mk_tls_context *c, X509 *leaf);
/* Keeps references. */
mk_err mk_tls_loaded_keypair_add(struct mk_tls_context *c, const char *file, X509 *leaf,
                                 STACK_OF(X509) * chain, EVP_PKEY *key) MK_MUST_USE;
/* Drops all of the context. */
void mk_tls_loaded_keypair_free_all(struct mk_tls_context *c);

#endif
