/* SPDX-License-Identifier: Apache-2.0 */
#include "server/reports.h"

#include <signal.h>
#include <stdio.h>

#include "os/program.h"

enum { REPORT_MAX = 256 * 1024 };

void mk_reports_print(const struct mk_conf_report *report)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    mk_conf_report_print(report, &text);
    if (mk_conf_report_lacks_memory(report))
        mk_buf_add(&text, MK_STR("monkey: out of memory while reading the configuration\n"));
    fwrite(mk_buf_str(&text).p, 1, text.len, stderr);
    mk_buf_free(&text);
}

static void log_lines(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        mk_log(log, level, "%.*s", MK_STR_ARG(line));
    }
}

/* Warnings stay warnings, also beside an error. */
static void log_problem(struct mk_log *log, const struct mk_conf_problem *p)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    mk_conf_report_print_one(p, &text);
    log_lines(log, p->severity == MK_CONF_ERROR ? MK_LOG_ERROR : MK_LOG_WARN, mk_buf_str(&text));
    mk_buf_free(&text);
}

void mk_reports_log(struct mk_log *log, struct mk_history *history, const struct mk_conf_report *report,
                    bool taken)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    mk_conf_report_print(report, &text);
    for (const struct mk_conf_problem *p = report->first; p; p = p->next)
        log_problem(log, p);
    if (report->n_errors + report->n_warnings > report->n_kept)
        mk_log_warn(log, "%zu more problems were found",
                    report->n_errors + report->n_warnings - report->n_kept);
    if (!taken)
        mk_history_stayed(history, text.len ? mk_buf_str(&text) : MK_STR("out of memory"));
    mk_buf_free(&text);
}

/* Plugins of another build expect another program. */
static const char *cause(void)
{
    return mk_program_is_replaced()
               ? "the program on disk is another build than the one that runs: restart the server"
               : "one of its plugins is broken";
}

void mk_reports_trial(struct mk_log *log, struct mk_history *history, const char *path, int e, mk_str said)
{
    char room[512];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&text, "%s: error: loading it ", path ? path : "command line");
    if (e == SIGALRM)
        mk_buf_add(&text, MK_STR("takes too long: one of its plugins hangs"));
    else if (e > 0)
        mk_buf_addf(&text, "crashes with signal %d: %s", e, cause());
    else
        mk_buf_addf(&text, "exits the program: %s", cause());
    if (e)
        said = mk_buf_str(&text);
    log_lines(log, MK_LOG_ERROR, said);
    mk_history_stayed(history, said);
}
