/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/logset.h"

struct mk_logfile *mk_logset_open(struct mk_logset *set, mk_str where, uint64_t max_size, unsigned keep,
                                  mk_err *error)
{
    size_t i = 0;
    while (i < set->n && !mk_str_eq(set->at[i].where, where))
        i++;
    struct mk_logfile *f = set->at + i; /* the slot after the last log if the log is new */
    if (i == set->n) {
        *error = set->n == MK_LOGFILES_MAX ? -E2BIG : mk_logfile_open(f, where, set->workers);
        if (*error)
            return NULL;
        f->index = (unsigned)set->n++;
    }
    if (!f->max_size) {
        f->max_size = max_size;
        f->keep = keep;
    }
    return f;
}

/* Returns a hint for the administrator about that error; NULL: none. */
static const char *error_hint(mk_err error)
{
    if (error == -ELOOP)
        return "as root, Monkey does not follow links to logs, and follows a link to a folder only if root "
               "owns the link and `User` cannot replace it: configure the path that the link leads to";
    if (error == -EPERM)
        return "`User` could replace the file or a folder above it: make root the owner of the folder, and "
               "let no other user write to it";
    return NULL;
}

struct mk_logfile *mk_logset_open_or_report(struct mk_logset *set, mk_str where, uint64_t max_size,
                                            unsigned keep, const struct mk_conf_source_pos *at,
                                            struct mk_conf_report *report)
{
    mk_err e;
    size_t before = set->n;
    struct mk_logfile *f = mk_logset_open(set, where, max_size, keep, &e);
    if (f && f->syslog_error && set->n > before)
        mk_conf_report_warn(report, at,
                            "no syslog service listens on /dev/log (%s): lines are lost until one does",
                            mk_err_text(f->syslog_error));
    if (f)
        return f;
    if (e == -E2BIG)
        mk_conf_report_error(report, at, "too many logs: at most %d are possible", MK_LOGFILES_MAX);
    else
        mk_conf_report_error(report, at, "cannot open the log `%s`: %s", where.p, mk_err_text(e));
    if (error_hint(e))
        mk_conf_report_hint(report, "%s", error_hint(e));
    return NULL;
}

void mk_logset_close(struct mk_logset *set)
{
    for (size_t i = 0; i < set->n; i++)
        mk_logfile_close(&set->at[i]);
}
