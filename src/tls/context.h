/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees the contexts of hosts. */
#ifndef MK_TLS_CONTEXT_H
#define MK_TLS_CONTEXT_H

#include "tls/context_type.h"

mk_err mk_tls_context_new(const struct mk_tls_server_settings *rules, struct mk_tls_context **out,
                          struct mk_tls_settings_error *problem);
void mk_tls_context_free(struct mk_tls_context *context);
int64_t mk_tls_context_valid_from(const struct mk_tls_context *context);
int64_t mk_tls_context_valid_until(const struct mk_tls_context *context);
bool mk_tls_context_has_certificate(const struct mk_tls_context *context, const char *certificate);

/* Returns the context that connections use until a host is selected; the first call creates it. NULL: out of
 * memory. */
SSL_CTX *mk_tls_context_without_certificate(void);

#endif
