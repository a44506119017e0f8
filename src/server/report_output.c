/* SPDX-License-Identifier: Apache-2.0 */
#include "server/report_output.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "os/proc.h"
#include "os/sd_notify.h"

enum { REPORT_MAX = 256 * 1024 };

/* Prints the lines to standard error. If standard error is the journal, each line begins with a priority. */
static void print_lines(enum mk_log_level level, mk_str text)
{
    const char *priority = !mk_sd_is_journal_stream(STDERR_FILENO) ? ""
                           : level == MK_LOG_ERROR                 ? "<3>"
                                                                   : "<4>";
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        fprintf(stderr, "%s%.*s\n", priority, MK_STR_ARG(line));
    }
}

static enum mk_log_level problem_log_level(const struct mk_conf_problem *p)
{
    return p->severity == MK_CONF_ERROR ? MK_LOG_ERROR : MK_LOG_WARN;
}

/* Calls print() for each problem, and for the count of omitted problems. */
static void for_each_problem(const struct mk_conf_report *report,
                             void (*print)(void *ctx, enum mk_log_level level, mk_str text), void *ctx)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    for (const struct mk_conf_problem *p = report->first; p; p = p->next) {
        mk_buf_clear(&text);
        mk_conf_report_print_one(p, &text);
        print(ctx, problem_log_level(p), mk_buf_str(&text));
    }
    mk_buf_clear(&text);
    mk_conf_report_print_omitted(report, &text);
    if (text.len)
        print(ctx, report->n_errors ? MK_LOG_ERROR : MK_LOG_WARN, mk_buf_str(&text));
    mk_buf_free(&text);
}

static void print_problem(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx;
    print_lines(level, text);
}

void mk_report_output_print(const struct mk_conf_report *report)
{
    for_each_problem(report, print_problem, NULL);
    if (mk_conf_report_out_of_memory(report))
        mk_report_output_print_error("out of memory while reading the configuration");
}

void mk_report_output_print_error(const char *fmt, ...)
{
    char buf[1024];
    va_list args;
    va_start(args, fmt);
    int len = snprintf(buf, sizeof buf, "monkey: ");
    vsnprintf(buf + len, sizeof buf - (size_t)len, fmt, args);
    va_end(args);
    print_lines(MK_LOG_ERROR, mk_str_from_c(buf));
}

static void log_lines(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    while (text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        mk_log(log, level, "%.*s", MK_STR_ARG(line));
    }
}

/* Logs a problem. A warning is logged as a warning even if the report also has errors. */
static void log_problem(void *ctx, enum mk_log_level level, mk_str text)
{
    log_lines(ctx, level, text);
}

void mk_report_output_log(struct mk_log *log, struct mk_reload_stats *stats,
                          const struct mk_conf_report *report, bool taken)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    for_each_problem(report, log_problem, log);
    mk_conf_report_print(report, &text);
    if (!taken)
        mk_scoreboard_reload_failed(stats, text.len ? mk_buf_str(&text) : MK_STR("out of memory"));
    mk_buf_free(&text);
}

/* ---- Trials ---- */

/* Encodes a problem: a level byte, its text, and a NUL, which text never contains. */
static void encode_problem(void *ctx, enum mk_log_level level, mk_str text)
{
    struct mk_buf *out = ctx;
    mk_buf_add_char(out, level == MK_LOG_ERROR ? 'E' : 'W');
    mk_buf_add(out, text);
    mk_buf_add_char(out, '\0');
}

void mk_report_output_encode(const struct mk_conf_report *report, struct mk_buf *out)
{
    for_each_problem(report, encode_problem, out);
    if (mk_conf_report_out_of_memory(report))
        encode_problem(out, MK_LOG_ERROR, MK_STR("out of memory\n"));
}

static void log_encoded_problems(struct mk_log *log, struct mk_buf *all, mk_str problems)
{
    while (problems.len) {
        mk_str problem = mk_str_cut(&problems, '\0');
        mk_str text = mk_str_skip(problem, 1);
        log_lines(log, mk_str_starts(problem, MK_STR("W")) ? MK_LOG_WARN : MK_LOG_ERROR, text);
        mk_buf_add(all, text);
    }
}

/* Returns the likely cause of a failed trial. If the program on disk was replaced, its plugins were built for
 * the new program. */
static const char *trial_failure_cause(void)
{
    return mk_proc_executable_is_replaced()
               ? "the program on disk is not the build that runs: restart the server"
               : "one of its plugins is broken";
}

static void write_trial_failure(struct mk_buf *text, const char *path, int e)
{
    mk_buf_addf(text, "%s: error: loading it ", path ? path : "command line");
    if (e == SIGALRM)
        mk_buf_add(text, MK_STR("takes too long: one of its plugins hangs"));
    else if (e > 0)
        mk_buf_addf(text, "crashes with signal %d: %s", e, trial_failure_cause());
    else
        mk_buf_addf(text, "exits the program: %s", trial_failure_cause());
}

void mk_report_output_log_trial(struct mk_log *log, struct mk_reload_stats *stats, const char *path, int e,
                                mk_str problems)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    if (e) {
        write_trial_failure(&text, path, e);
        log_lines(log, MK_LOG_ERROR, mk_buf_str(&text));
    } else {
        log_encoded_problems(log, &text, problems);
    }
    mk_scoreboard_reload_failed(stats, mk_buf_str(&text));
    mk_buf_free(&text);
}
