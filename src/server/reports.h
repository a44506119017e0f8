/* SPDX-License-Identifier: Apache-2.0 */
/* What was wrong with a configuration: on the terminal, in the error log, and in the history that workers
 * see. */
#ifndef MK_SERVER_REPORTS_H
#define MK_SERVER_REPORTS_H

#include "base/log.h"
#include "conf/report.h"
#include "worker/history.h"

/* To standard error, which may be the journal. */
void mk_reports_print(const struct mk_conf_report *report);
/* The same for a message: why the program ends. */
void mk_reports_complain(const char *fmt, ...) MK_PRINTF(1, 2);
/* Line by line. Not `taken`: the configuration is rejected. */
void mk_reports_log(struct mk_log *log, struct mk_history *history, const struct mk_conf_report *report,
                    bool taken);
/* Writes the problems for mk_reports_trial(). */
void mk_reports_write(const struct mk_conf_report *report, struct mk_buf *out);
/* What the trial of a configuration has found: `e` as mk_crash_probe_run() has it, or else the problems that it wrote
 * with mk_reports_write(). `path`: of the configuration; NULL: the command line. */
void mk_reports_trial(struct mk_log *log, struct mk_history *history, const char *path, int e, mk_str said);

#endif
