/* SPDX-License-Identifier: Apache-2.0 */
/* The error log: messages with time, level and process, written without delay. */
#ifndef MK_LOGS_ERRORLOG_H
#define MK_LOGS_ERRORLOG_H

#include "logs/logwriter.h"

struct mk_errorlog {
    struct mk_log log;
    struct mk_logwriter own;
    struct mk_logwriter *writer; /* `own`, or that of the worker that serves in this process; without a file:
                                    standard error */
    /* In a program with an ear for them, messages go there too, and without a file to nothing else. */
    void (*hear)(void *ctx, enum mk_log_level level, mk_str text);
    void *hear_ctx;
    bool is_silent; /* in a program that has none: without a file they go nowhere */
};

/* -ENOMEM: messages about a lack of memory must not need any, so memory for a line is reserved. */
mk_err mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level,
                        const struct mk_logfile *file) MK_MUST_USE;
void mk_errorlog_fini(struct mk_errorlog *e);
enum { MK_ERRORLOG_HEAD = 64 }; /* bytes of a line besides its text, at most */
/* Appends a message as a line of the log `file`: with time, level and process where the log does not add them itself. */
void mk_errorlog_format_line(const struct mk_logfile *file, enum mk_log_level level, mk_str text,
                             struct mk_buf *out);
/* Another configuration serves: from now on, its level and log. */
void mk_errorlog_switch(struct mk_errorlog *e, enum mk_log_level level, const struct mk_logfile *file);
/* Lines, and the count of lost ones, go to this writer, which the caller owns, until NULL is given. A log of
 * another kind ignores it. */
mk_err mk_errorlog_set_writer(struct mk_log *log, struct mk_logwriter *writer) MK_MUST_USE;
/* Reports how many lines the error log has lost, if it is writable again. Each message does so, too. */
void mk_errorlog_report_lost(struct mk_log *log);

#endif
