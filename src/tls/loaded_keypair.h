/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys loaded by a context: a later context takes them over if their files are unusable. */
#ifndef MK_TLS_LOADED_KEYPAIR_H
#define MK_TLS_LOADED_KEYPAIR_H

#include "tls/context_type.h"

/* NULL: the context has loaded no certificate from that file. */
const struct mk_tls_loaded_keypair *mk_tls_loaded_keypair_find(const struct mk_tls_context *c,
                                                               const char *file);
/* True if the context has a certificate with the same key type. */
bool mk_tls_loaded_keypair_has_key_type(const struct mk_tls_context *c, X509 *leaf);
/* Holds references. */
mk_err mk_tls_loaded_keypair_add(struct mk_tls_context *c, const char *file, X509 *leaf,
                                 STACK_OF(X509) * chain, EVP_PKEY *key) MK_MUST_USE;
/* Frees all of the context's. */
void mk_tls_loaded_keypair_free_all(struct mk_tls_context *c);

#endif
