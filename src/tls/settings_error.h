/* SPDX-License-Identifier: Apache-2.0 */
/* Reports errors and warnings about TLS settings. */
#ifndef MK_TLS_SETTINGS_ERROR_H
#define MK_TLS_SETTINGS_ERROR_H

#include "base/err.h"
#include "event/tls.h"

/* Returns -EINVAL, and sets *p to an error caused by `file`; NULL: no file is the cause. */
MK_COLD mk_err mk_tls_settings_error_set(struct mk_tls_settings_error *p, const char *file, const char *fmt,
                                         ...) MK_PRINTF(3, 4);
/* Like mk_tls_settings_error_set(), but appends ": " and OpenSSL's last error. */
MK_COLD mk_err mk_tls_settings_error_set_openssl(struct mk_tls_settings_error *p, const char *file,
                                                 const char *what);
/* Sets a warning; only the first warning is reported. */
MK_COLD void mk_tls_settings_error_warn(struct mk_tls_settings_error *p, const char *file, const char *fmt,
                                        ...) MK_PRINTF(3, 4);

#endif
