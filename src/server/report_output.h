/* SPDX-License-Identifier: Apache-2.0 */
/* Output of configuration errors: to the terminal, the error log, and the reload statistics visible to
 * workers. */
#ifndef MK_SERVER_REPORT_OUTPUT_H
#define MK_SERVER_REPORT_OUTPUT_H

#include "base/log.h"
#include "conf/report.h"
#include "worker/scoreboard.h"

/* Prints the report to standard error, which may be the journal. */
void mk_report_output_print(const struct mk_conf_report *report);
/* Prints one line, "monkey: ...", with the reason why the program exits. */
void mk_report_output_print_error(const char *fmt, ...) MK_PRINTF(1, 2);
/* Logs the report line by line. If `taken` is false, the configuration was rejected, and the statistics
 * record the reload as failed. */
void mk_report_output_log(struct mk_log *log, struct mk_reload_stats *stats,
                          const struct mk_conf_report *report, bool taken);
/* Encodes the problems for mk_report_output_log_trial(). */
void mk_report_output_encode(const struct mk_conf_report *report, struct mk_buf *out);
/* Logs the result of a trial: `e` as from mk_crash_probe_run(), or the problems encoded by
 * mk_report_output_encode(). `path`: path of the configuration; NULL: the command line. */
void mk_report_output_log_trial(struct mk_log *log, struct mk_reload_stats *stats, const char *path, int e,
                                mk_str problems);

#endif
