/* SPDX-License-Identifier: Apache-2.0 */
/* What the server has to tell its owner: levels, and a sink that whoever made the log chooses. */
#ifndef MK_BASE_LOG_H
#define MK_BASE_LOG_H

#include <monkey/log.h>

#include <stdarg.h>

#include "base/str.h"

struct mk_log {
    enum mk_log_level level; /* what is less urgent is not written */
    /* One finished message without line end and with no control characters in it; must not fail loudly. */
    void (*write)(struct mk_log *log, enum mk_log_level level, mk_str text);
    void *data; /* the sink's own */
};

extern const char *const mk_log_level_names[MK_LOG_LEVELS];

/* Makes text harmless that may quote what a client sent. It ends with a NUL. */
void mk_log_disarm(char *text, size_t len);

/* `log` may be NULL: then nothing is written. */
void mk_log(struct mk_log *log, enum mk_log_level level, const char *fmt, ...) MK_PRINTF(3, 4);
void mk_log_args(struct mk_log *log, enum mk_log_level level, const char *fmt, va_list args) MK_PRINTF(3, 0);

#define mk_log_error(log, ...) mk_log(log, MK_LOG_ERROR, __VA_ARGS__)
#define mk_log_warn(log, ...)  mk_log(log, MK_LOG_WARN, __VA_ARGS__)
#define mk_log_info(log, ...)  mk_log(log, MK_LOG_INFO, __VA_ARGS__)
#define mk_log_debug(log, ...) mk_log(log, MK_LOG_DEBUG, __VA_ARGS__)

#endif
