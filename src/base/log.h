/* SPDX-License-Identifier: Apache-2.0 */
/* Log levels, and a log that writes to a sink chosen by its creator. */
#ifndef MK_BASE_LOG_H
#define MK_BASE_LOG_H

#include <monkey/log.h>

#include <stdarg.h>

#include "base/str.h"

struct mk_log {
    enum mk_log_level level; /* less urgent messages are dropped */
    /* Writes one complete message, which has no line end or control characters; must not log its own
     * failures. */
    void (*write)(struct mk_log *log, enum mk_log_level level, mk_str text);
    void *data;                         /* for the sink */
    bool is_json;                       /* the sink writes JSON */
    const struct mk_log_fields *fields; /* fields of the message that is being written; NULL: none */
    size_t message_len;                 /* length of that message without its fields */
};

/* Not public: a plugin built for an older version would contain an outdated count. */
enum { MK_LOG_LEVEL_COUNT = MK_LOG_DEBUG + 1 };

extern const char *const mk_log_level_names[MK_LOG_LEVEL_COUNT];

/* Replaces control characters in text that may quote a client. A NUL must follow the `len` bytes. */
void mk_log_sanitize(char *text, size_t len);

/* `log` may be NULL: the message is dropped. */
void mk_log(struct mk_log *log, enum mk_log_level level, const char *fmt, ...) MK_PRINTF(3, 4);
void mk_log_va(struct mk_log *log, enum mk_log_level level, const char *fmt, va_list args) MK_PRINTF(3, 0);

/* Writes a message with fields. A text log contains them after the message, a JSON log as members. */
void mk_log_with_fields(struct mk_log *log, enum mk_log_level level, mk_str message,
                        const struct mk_log_fields *fields);

#define mk_log_error(log, ...) mk_log(log, MK_LOG_ERROR, __VA_ARGS__)
#define mk_log_warn(log, ...)  mk_log(log, MK_LOG_WARN, __VA_ARGS__)
#define mk_log_info(log, ...)  mk_log(log, MK_LOG_INFO, __VA_ARGS__)
#define mk_log_debug(log, ...) mk_log(log, MK_LOG_DEBUG, __VA_ARGS__)

#endif
