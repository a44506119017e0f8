/* SPDX-License-Identifier: Apache-2.0 */
/* Reports errors and warnings about TLS settings. */
#ifndef MK_TLS_SETTINGS_ERROR_H
#define MK_TLS_SETTINGS_ERROR_H

#include "base/err.h"
#include "net/tls.h"

/* -EINVAL, and *p says it: of this file of the rules; NULL: of none. */
MK_COLD mk_err mk_tls_settings_error_set(struct mk_tls_settings_error *p, const char *file, const char *fmt,
                                         ...) MK_PRINTF(3, 4);
/* The same behind "...: " and OpenSSL's words for what it has met last. */
MK_COLD mk_err mk_tls_settings_error_set_openssl(struct mk_tls_settings_error *p, const char *file,
                                                 const char *what);
/* Only the first warning is reported. */
MK_COLD void mk_tls_settings_error_warn(struct mk_tls_settings_error *p, const char *file, const char *fmt,
                                        ...) MK_PRINTF(3, 4);

#endif
