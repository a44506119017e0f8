/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/settings_error.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/compiler.h"

static MK_PRINTF(3, 0) void format_error(struct mk_tls_settings_error *p, const char *file, const char *fmt,
                                         va_list args)
{
    p->file = file;
    (void)vsnprintf(p->text, sizeof p->text, fmt, args);
}

mk_err mk_tls_settings_error_set(struct mk_tls_settings_error *p, const char *file, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    format_error(p, file, fmt, args);
    va_end(args);
    ERR_clear_error();
    return -EINVAL;
}

mk_err mk_tls_settings_error_set_openssl(struct mk_tls_settings_error *p, const char *file, const char *what)
{
    const char *error = ERR_reason_error_string(ERR_peek_last_error());
    return mk_tls_settings_error_set(p, file, "%s: %s", what, error ? error : "OpenSSL does not say why");
}

void mk_tls_settings_error_warn(struct mk_tls_settings_error *p, const char *file, const char *fmt, ...)
{
    va_list args;
    if (*p->text)
        return;
    va_start(args, fmt);
    format_error(p, file, fmt, args);
    va_end(args);
}
