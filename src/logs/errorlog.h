/* SPDX-License-Identifier: Apache-2.0 */
/* The error log: messages with timestamp, level and process ID, written without delay. */
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

/* Reserves memory for a line (or returns -ENOMEM), because messages about a lack of memory must not allocate
 * memory. */
mk_err mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level,
                        const struct mk_logfile *file) MK_MUST_USE;
void mk_errorlog_fini(struct mk_errorlog *e);
/* The maximum length of a line with this text and these fields, which may be NULL. */
size_t mk_errorlog_line_size(const struct mk_logfile *file, mk_str text, const struct mk_log_fields *fields);
/* Appends a message as a line of the log `file`, with timestamp, level and process ID, unless the log adds
 * them itself. Only JSON lines contain the fields; NULL: none. */
void mk_errorlog_format_line(const struct mk_logfile *file, enum mk_log_level level, mk_str text,
                             const struct mk_log_fields *fields, struct mk_buf *out);
/* Switches to the level and the log file of another configuration. */
void mk_errorlog_switch(struct mk_errorlog *e, enum mk_log_level level, const struct mk_logfile *file);
/* Makes the log use this writer, which the caller owns; NULL: the log's own writer again. The count of lost
 * lines moves to the new writer. Does nothing if `log` is not part of a struct mk_errorlog. */
mk_err mk_errorlog_set_writer(struct mk_log *log, struct mk_logwriter *writer) MK_MUST_USE;
/* Reports how many lines were lost, if the log is writable again. Each new message does so as well. */
void mk_errorlog_report_lost(struct mk_log *log);

#endif
