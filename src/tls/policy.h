/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol versions, ciphers, groups, and trusted client CAs. */
#ifndef MK_TLS_POLICY_H
#define MK_TLS_POLICY_H

#include "tls/context_type.h"

/* Applies protocol versions, ciphers and groups. */
mk_err mk_tls_policy_apply(struct mk_tls_context *c, const struct mk_tls_server_settings *rules,
                           struct mk_tls_settings_error *problem);
/* Applies the rules for client certificates; contexts that trust different authorities do not share
 * sessions. */
mk_err mk_tls_policy_apply_client_auth(struct mk_tls_context *c, const struct mk_tls_server_settings *rules,
                                       struct mk_tls_settings_error *problem);

#endif
