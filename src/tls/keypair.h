/* SPDX-License-Identifier: Apache-2.0 */
/* Loads certificates and keys from files or strings, with a specific message for every error. */
#ifndef MK_TLS_KEYPAIR_H
#define MK_TLS_KEYPAIR_H

#include "tls/context_type.h"

/* Loads the pair into the context and checks it. */
mk_err mk_tls_keypair_load(struct mk_tls_context *c, const struct mk_tls_keypair *pair,
                           struct mk_tls_settings_error *problem);

/* Copies from `from` the pairs whose key type `c` does not have yet. */
mk_err mk_tls_keypair_reuse_others(struct mk_tls_context *c, const struct mk_tls_context *from,
                                   struct mk_tls_settings_error *problem);

/* Reads the certificate, its chain and its key from one file of a plugin. On failure, *out is empty. */
mk_err mk_tls_keypair_read(const char *file, struct mk_tls_loaded_keypair *out);

/* Uses the certificate and key in one file for this connection only. */
mk_err mk_tls_keypair_use_for_conn(SSL *ssl, const char *file);

#endif
