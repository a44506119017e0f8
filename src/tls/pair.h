/* SPDX-License-Identifier: Apache-2.0 */
/* Loads certificates and their keys from files, with a message for everything that can be wrong with them. */
#ifndef MK_TLS_PAIR_H
#define MK_TLS_PAIR_H

#include "tls/context_type.h"

/* Loads the pair into the context and looks at it. */
mk_err mk_tls_pair_load(struct mk_tls_context *c, const struct mk_tls_pair *pair,
                        struct mk_tls_problem *problem);

/* Certificate and key of one file for this connection alone. */
mk_err mk_tls_pair_use(SSL *ssl, const char *file);

#endif
