/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys that a context has loaded: a later context reuses them if their files are invalid by
 * then. */
#ifndef MK_TLS_LOADED_KEYPAIR_H
#define MK_TLS_LOADED_KEYPAIR_H

#include "tls/context_type.h"

/* Finds the key pair of a file. NULL: the context has loaded no certificate from that file. */
const struct mk_tls_loaded_keypair *mk_tls_loaded_keypair_find(const struct mk_tls_context *c,
                                                               const char *file);
/* Does the context have a certificate with the same key type as `leaf`? */
bool mk_tls_loaded_keypair_has_key_type(const struct mk_tls_context *c, X509 *leaf);
/* Adds a key pair; the context holds references to the certificates and the key. */
mk_err mk_tls_loaded_keypair_add(struct mk_tls_context *c, const char *file, X509 *leaf,
                                 STACK_OF(X509) * chain, EVP_PKEY *key) MK_MUST_USE;
/* Frees the references, and clears the struct. */
void mk_tls_loaded_keypair_free(struct mk_tls_loaded_keypair *s);
/* Frees all key pairs of the context. */
void mk_tls_loaded_keypair_free_all(struct mk_tls_context *c);

#endif
