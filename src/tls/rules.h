/* SPDX-License-Identifier: Apache-2.0 */
/* What is allowed and preferred, and whom of the clients is trusted. */
#ifndef MK_TLS_RULES_H
#define MK_TLS_RULES_H

#include "tls/context.h"

/* Versions, ciphers, groups. */
mk_err mk_tls_rules_set(struct mk_tls_context *c, const struct mk_tls_rules *rules,
                        struct mk_tls_problem *problem);
/* Certificates of clients; who trusts others has sessions of his own. */
mk_err mk_tls_rules_set_clients(struct mk_tls_context *c, const struct mk_tls_rules *rules,
                                struct mk_tls_problem *problem);

#endif
