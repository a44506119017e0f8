/* SPDX-License-Identifier: Apache-2.0 */
/* What was wrong with a configuration: on the terminal, in the error log, and in the history that workers
 * see. */
#ifndef MK_SERVER_REPORT_OUTPUT_H
#define MK_SERVER_REPORT_OUTPUT_H

#include "base/log.h"
#include "conf/report.h"
#include "worker/reload_stats.h"

/* To standard error, which may be the journal. */
void mk_report_output_print(const struct mk_conf_report *report);
/* The same for a message: why the program ends. */
void mk_report_output_print_error(const char *fmt, ...) MK_PRINTF(1, 2);
/* Line by line. Not `taken`: the configuration is rejected. */
void mk_report_output_log(struct mk_log *log, struct mk_reload_stats *history,
                          const struct mk_conf_report *report, bool taken);
/* Writes the problems for mk_report_output_log_trial(). */
void mk_report_output_encode(const struct mk_conf_report *report, struct mk_buf *out);
/* What the trial of a configuration has found: `e` as mk_crash_probe_run() has it, or else the problems that it wrote
 * with mk_report_output_encode(). `path`: of the configuration; NULL: the command line. */
void mk_report_output_log_trial(struct mk_log *log, struct mk_reload_stats *history, const char *path, int e,
                                mk_str problems);

#endif
