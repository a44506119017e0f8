/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a configuration: everything that one run finds, each with its place, what was expected
 * and, where one is near, the word that was probably meant. */
#ifndef MK_CONF_REPORT_H
#define MK_CONF_REPORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* A point in a file. The text belongs to the arena of the configuration, in a report to that of the report.
 */
struct mk_conf_place {
    mk_str file;
    unsigned line;   /* from 1; 0: the file as a whole */
    unsigned column; /* in bytes, from 1; 0: the line as a whole */
    mk_str source;   /* the line as written, without its end; absent if there is none to show */
};

/* A piece of text for "`%.*s`" in a message, which should stay short whatever the file holds. */
#define MK_CONF_REPORT_ARG(s) ((int)mk_min((s).len, 64)), ((s).p ? (s).p : "")

enum mk_conf_severity { MK_CONF_ERROR, MK_CONF_WARNING };

struct mk_conf_problem {
    struct mk_conf_problem *next;
    enum mk_conf_severity severity;
    struct mk_conf_place at;
    mk_str text; /* one sentence without a stop */
    mk_str hint; /* absent if there is none */
};

/* So many problems are kept, the others only counted. */
enum { MK_CONF_REPORT_MAX = 100 };

struct mk_conf_report {
    struct mk_arena *arena;
    struct mk_conf_problem *first, *last; /* in the order in which they were found */
    struct mk_conf_problem *open;         /* the one that a hint belongs to */
    size_t n_kept;
    size_t n_errors, n_warnings; /* with those that were not kept */
    bool no_memory;              /* sticky: something could not be stored, what was read is not complete */
};

/* The problems live in `arena`, with all their text: a report outlives the configuration that it is about. */
void mk_conf_report_init(struct mk_conf_report *r, struct mk_arena *arena);

void mk_conf_report_error(struct mk_conf_report *r, const struct mk_conf_place *at, const char *fmt, ...)
    MK_PRINTF(3, 4);
void mk_conf_report_warn(struct mk_conf_report *r, const struct mk_conf_place *at, const char *fmt, ...)
    MK_PRINTF(3, 4);
void mk_conf_report_addv(struct mk_conf_report *r, enum mk_conf_severity severity,
                         const struct mk_conf_place *at, const char *fmt, va_list args) MK_PRINTF(4, 0);
/* Adds a hint to the problem reported last. */
void mk_conf_report_hint(struct mk_conf_report *r, const char *fmt, ...) MK_PRINTF(2, 3);
void mk_conf_report_hintv(struct mk_conf_report *r, const char *fmt, va_list args) MK_PRINTF(2, 0);
/* The same as "did you mean `word`?"; nothing if the word is absent. */
void mk_conf_report_meant(struct mk_conf_report *r, mk_str word);

/* What the report comes to: -ENOMEM, else -EINVAL if it has an error, else 0 (warnings count nothing). */
mk_err mk_conf_report_result(const struct mk_conf_report *r) MK_MUST_USE;

/* Writes one problem, each line with its end:
 *     monkey.conf:7:19: error: `1O` is not a time: expected a number of s, ms, m or h
 *         KeepAliveTimeout 1O
 *                          ^
 *         hint: ...
 * The source line and the hint are left out when there is none. Control characters become `?`. */
void mk_conf_report_print_one(const struct mk_conf_problem *p, struct mk_buf *out);
/* Writes all of them, and how many more there were. */
void mk_conf_report_print(const struct mk_conf_report *r, struct mk_buf *out);

#endif
