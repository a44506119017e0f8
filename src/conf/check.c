/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/check.h"

#include "conf/nearest.h"

static const struct mk_conf_table *table_of(const struct mk_conf_table *const *tables, size_t n, mk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq_nocase(mk_str_from_c(tables[i]->section), name))
            return tables[i];
    return NULL;
}

static void report_unknown(const struct mk_conf_section *s, const struct mk_conf_table *const *tables,
                           size_t n, struct mk_conf_report *report)
{
    struct mk_conf_nearest near = mk_conf_nearest_to(s->name);
    mk_conf_report_error(report, &s->at, "unknown section [%.*s]", MK_CONF_REPORT_ARG(s->name));
    for (size_t i = 0; i < n && mk_conf_report_wants_hint(report); i++)
        mk_conf_nearest_try(&near, mk_str_from_c(tables[i]->section));
    if (near.best.p)
        mk_conf_report_hint(report, "did you mean [%.*s]?", MK_CONF_REPORT_ARG(near.best));
}

static void report_twice(const struct mk_conf_section *s, const struct mk_conf_section *first,
                         struct mk_conf_report *report)
{
    if (mk_str_eq(s->at.file, first->at.file))
        mk_conf_report_error(report, &s->at, "[%.*s] is already in line %u", MK_CONF_REPORT_ARG(s->name),
                             first->at.line);
    else
        mk_conf_report_error(report, &s->at, "[%.*s] is already in %.*s:%u", MK_CONF_REPORT_ARG(s->name),
                             MK_STR_ARG(first->at.file), first->at.line);
}

mk_err mk_conf_check_sections(const struct mk_conf_tree *tree, const struct mk_conf_table *const *tables,
                              size_t n, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    for (const struct mk_conf_section *s = tree->first; s; s = s->next) {
        const struct mk_conf_table *table = table_of(tables, n, s->name);
        const struct mk_conf_section *first = table && !table->repeatable && table->scope == MK_CONF_SERVER
                                                  ? mk_conf_tree_find(tree, s->name)
                                                  : s;
        if (!table)
            report_unknown(s, tables, n, report);
        else if (first != s)
            report_twice(s, first, report);
    }
    return mk_conf_report_lacks_memory(report) ? -ENOMEM : report->n_errors > n_errors ? -EINVAL : 0;
}
