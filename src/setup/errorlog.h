/* SPDX-License-Identifier: Apache-2.0 */
/* The error log: messages with time, level and process, written without delay. */
#ifndef MK_SETUP_ERRORLOG_H
#define MK_SETUP_ERRORLOG_H

#include "base/log.h"
#include "setup/logfile.h"

struct mk_errorlog {
    struct mk_log log;
    struct mk_logfile *file; /* NULL: standard error */
};

/* Reports how many lines the error log has lost, if it is writable again. Each message does so, too. */
void mk_errorlog_catch_up(struct mk_log *log);

/* Memory for a line: messages about a lack of memory must not need any. False when there is none now. */
bool mk_errorlog_reserve(struct mk_logfile *file) MK_MUST_USE;
void mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level, struct mk_logfile *file);

#endif
