/* SPDX-License-Identifier: Apache-2.0 */
/* Report on a configuration: all errors and warnings, each with its position, the expected form, and a
 * suggestion if a similar word exists. */
#ifndef MK_CONF_REPORT_H
#define MK_CONF_REPORT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* A position in a file. `file` and `source` point into the configuration's arena or, within a report, into
 * the report's arena. */
struct mk_conf_source_pos {
    mk_str file;
    unsigned line;   /* line number, from 1; 0: the whole file */
    unsigned column; /* position in the line in bytes, from 1; 0: the whole line */
    mk_str source;   /* the line as written, without its line end; absent: there is no line to show */
};

/* Text for "`%.*s`" in a message, truncated to keep the message short. */
#define MK_CONF_REPORT_ARG(s) ((int)mk_min((s).len, 64)), ((s).p ? (s).p : "")

struct mk_conf_list;
struct mk_geo;

enum mk_conf_severity { MK_CONF_ERROR, MK_CONF_WARNING };

struct mk_conf_problem {
    struct mk_conf_problem *next;
    enum mk_conf_severity severity;
    struct mk_conf_source_pos at;
    mk_str text; /* one sentence without a trailing period */
    mk_str hint; /* absent if there is none */
};

/* Problems beyond this number are only counted. */
enum { MK_CONF_REPORT_MAX = 100 };

struct mk_conf_report {
    struct mk_arena *arena;
    struct mk_conf_problem *first, *last; /* in order of discovery */
    struct mk_conf_problem *open;         /* the last problem, for a hint; NULL: none, or it was dropped */
    size_t n_kept;
    size_t n_errors, n_warnings;    /* including dropped problems */
    bool no_memory;                 /* sticky: an allocation failed, so the result is incomplete */
    const struct mk_geo *geo;       /* databases of addresses: setup/geo.c */
    struct mk_conf_list *lists;     /* lists of values that were read from files: setup/condition_file.c */
    const struct mk_arena *watched; /* arena in which the result is built; NULL: the arena of the report */
};

/* Keeps problems and their text in `arena`, so a report can outlive its configuration. */
void mk_conf_report_init(struct mk_conf_report *r, struct mk_arena *arena);
/* Watches the arena in which the result is built: reading fails if an allocation in that arena fails. NULL:
 * stops watching, but remembers an earlier failure. */
void mk_conf_report_watch_arena(struct mk_conf_report *r, const struct mk_arena *built_in);
/* Did the report or the watched arena run out of memory? */
bool mk_conf_report_out_of_memory(const struct mk_conf_report *r);

void mk_conf_report_error(struct mk_conf_report *r, const struct mk_conf_source_pos *at, const char *fmt, ...)
    MK_PRINTF(3, 4);
void mk_conf_report_warn(struct mk_conf_report *r, const struct mk_conf_source_pos *at, const char *fmt, ...)
    MK_PRINTF(3, 4);
void mk_conf_report_addv(struct mk_conf_report *r, enum mk_conf_severity severity,
                         const struct mk_conf_source_pos *at, const char *fmt, va_list args) MK_PRINTF(4, 0);
/* Sets the hint of the last problem. By default, a problem has a hint only if a `#` or `;` follows its
 * value. */
void mk_conf_report_hint(struct mk_conf_report *r, const char *fmt, ...) MK_PRINTF(2, 3);
void mk_conf_report_hintv(struct mk_conf_report *r, const char *fmt, va_list args) MK_PRINTF(2, 0);
/* Would a hint be kept? If not, there is no need to search for one. */
static inline bool mk_conf_report_wants_hint(const struct mk_conf_report *r)
{
    return r->open != NULL;
}
/* Sets the hint of the last problem to "did you mean `word`?"; does nothing if the word is absent. */
void mk_conf_report_suggest(struct mk_conf_report *r, mk_str word);

/* Returns -ENOMEM if memory ran out, -EINVAL if there are errors, or else 0. Warnings do not count. */
mk_err mk_conf_report_result(const struct mk_conf_report *r) MK_MUST_USE;

/* Writes one problem; every line ends with a newline:
 *     monkey.conf:7:19: error: expected a time (ms, s, m, h, d) from 100ms to 1d, not `1O`
 *         KeepAliveTimeout 1O
 *                          ^
 *         hint: ...
 * The source line and the hint are omitted if they are absent. Control characters become `?`. */
void mk_conf_report_print_one(const struct mk_conf_problem *p, struct mk_buf *out);
/* Writes all problems, and the number of dropped problems. */
void mk_conf_report_print(const struct mk_conf_report *r, struct mk_buf *out);
/* Writes only the number of dropped problems. */
void mk_conf_report_print_omitted(const struct mk_conf_report *r, struct mk_buf *out);

#endif
