/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, ciphers, groups, and trusted client authorities. */
#ifndef MK_TLS_RULES_H
#define MK_TLS_RULES_H

#include "tls/context_type.h"

/* Versions, ciphers, groups. */
mk_err mk_tls_rules_set(struct mk_tls_context *c, const struct mk_tls_rules *rules,
                        struct mk_tls_problem *problem);
/* Client certificates; contexts that trust different authorities do not share sessions. */
mk_err mk_tls_rules_set_clients(struct mk_tls_context *c, const struct mk_tls_rules *rules,
                                struct mk_tls_problem *problem);

#endif
