/* SPDX-License-Identifier: Apache-2.0 */
/* The error log: messages with time, level and process, written without delay. */
#ifndef MK_LOGS_ERRORLOG_H
#define MK_LOGS_ERRORLOG_H

#include "logs/logwriter.h"

struct mk_errorlog {
    struct mk_log log;
    struct mk_logwriter own;
    struct mk_logwriter *writer; /* `own`, or the writer of the worker in this process; without a file,
                                  * messages go to standard error */
    /* The log callback of the program: receives every message, and is the only receiver if there is no
     * file. */
    void (*on_message)(void *ctx, enum mk_log_level level, mk_str text);
    void *on_message_ctx;
    bool is_silent; /* in a program without a log callback: messages are dropped if there is no file */
};

/* Reserves memory for a line (or returns -ENOMEM), because messages about a lack of memory must not need
 * any. */
mk_err mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level,
                        const struct mk_logfile *file) MK_MUST_USE;
void mk_errorlog_fini(struct mk_errorlog *e);
enum { MK_ERRORLOG_HEAD = 64 }; /* maximum bytes of a line in addition to its text */
/* Appends a message as a line of the log `file`, with time, level and process unless the log adds them
 * itself. */
void mk_errorlog_format_line(const struct mk_logfile *file, enum mk_log_level level, mk_str text,
                             struct mk_buf *out);
/* Switches to the level and the log of another configuration. */
void mk_errorlog_switch(struct mk_errorlog *e, enum mk_log_level level, const struct mk_logfile *file);
/* Sends lines, and the count of lost lines, to this writer, which the caller owns, until NULL is set. Logs
 * other than mk_errorlog ignore the call. */
mk_err mk_errorlog_set_writer(struct mk_log *log, struct mk_logwriter *writer) MK_MUST_USE;
/* Reports how many lines were lost, if the log is writable again. Each message also reports lost lines. */
void mk_errorlog_report_lost(struct mk_log *log);

#endif
