/* SPDX-License-Identifier: Apache-2.0 */
/* The error log: messages with time, level and process, written at once. */
#ifndef MK_SERVER_ERRORLOG_H
#define MK_SERVER_ERRORLOG_H

#include "base/log.h"
#include "server/logfile.h"

struct mk_errorlog {
    struct mk_log log;
    struct mk_logfile *file; /* NULL: standard error */
};

void mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level, struct mk_logfile *file);

#endif
