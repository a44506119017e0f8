/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdio.h>

enum { MESSAGE_MAX = 1024 };

const char *const mk_log_level_names[MK_LOG_LEVEL_COUNT] = {
    [MK_LOG_ERROR] = "error",
    [MK_LOG_WARN] = "warn",
    [MK_LOG_INFO] = "info",
    [MK_LOG_DEBUG] = "debug",
};

/* Keeps text from ending the line or sending control sequences to a terminal. Control characters are those of
 * ASCII, and U+0080 to U+009F (in UTF-8, the byte C2 and one more byte). */
void mk_log_sanitize(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i], next = (unsigned char)text[i + 1];
        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
        else if (c == 0xc2 && next >= 0x80 && next <= 0x9f)
            text[i] = text[i + 1] = '?';
    }
}

void mk_log_va(struct mk_log *log, enum mk_log_level level, const char *fmt, va_list args)
{
    if (!log || level > log->level)
        return;
    char text[MESSAGE_MAX];
    int len = vsnprintf(text, sizeof text, fmt, args);
    if (len < 0)
        return;
    size_t kept = mk_min((size_t)len, sizeof text - 1);
    mk_log_sanitize(text, kept);
    log->write(log, level, mk_str_of(text, kept));
}

void mk_log(struct mk_log *log, enum mk_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    mk_log_va(log, level, fmt, args);
    va_end(args);
}

void mk_log_with_fields(struct mk_log *log, enum mk_log_level level, mk_str message,
                        const struct mk_log_fields *fields)
{
    if (!log || level > log->level)
        return;
    log->fields = fields;
    if (log->is_json)
        mk_log(log, level, "%.*s", MK_STR_ARG(message));
    else
        mk_log(log, level, "%.*s%.*s", MK_STR_ARG(message), MK_STR_ARG(fields->text));
    log->fields = NULL;
}
