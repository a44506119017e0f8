/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/check.h"

#include "conf/other_keys.h"
#include "conf/suggest.h"

static const struct mk_conf_table *find_table(const struct mk_conf_table *const *tables, size_t n,
                                              mk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq_nocase(mk_str_from_c(tables[i]->section), name))
            return tables[i];
    return NULL;
}

static void report_unknown_section(const struct mk_conf_section *s, const struct mk_conf_table *const *tables,
                                   size_t n, struct mk_conf_report *report)
{
    struct mk_conf_suggest near = mk_conf_suggest_for(s->name);
    mk_conf_report_error(report, &s->at, "unknown section [%.*s]", MK_CONF_REPORT_ARG(s->name));
    for (size_t i = 0; i < n && mk_conf_report_wants_hint(report); i++)
        mk_conf_suggest_try(&near, mk_str_from_c(tables[i]->section));
    const char *equivalent = near.best.p ? NULL : mk_conf_other_keys_hint(s->name);
    if (near.best.p)
        mk_conf_report_hint(report, "did you mean [%.*s]?", MK_CONF_REPORT_ARG(near.best));
    else if (equivalent)
        mk_conf_report_hint(report, "%s", equivalent);
}

static void report_duplicate_section(const struct mk_conf_section *s, const struct mk_conf_section *first,
                                     struct mk_conf_report *report)
{
    if (mk_str_eq(s->at.file, first->at.file))
        mk_conf_report_error(report, &s->at, "[%.*s] is already defined on line %u",
                             MK_CONF_REPORT_ARG(s->name), first->at.line);
    else
        mk_conf_report_error(report, &s->at, "[%.*s] is already defined in %.*s:%u",
                             MK_CONF_REPORT_ARG(s->name), MK_STR_ARG(first->at.file), first->at.line);
}

mk_err mk_conf_check_sections(const struct mk_conf_tree *tree, const struct mk_conf_table *const *tables,
                              size_t n, struct mk_conf_report *report)
{
    size_t n_errors = report->n_errors;
    for (const struct mk_conf_section *s = tree->first; s; s = s->next) {
        const struct mk_conf_table *table = find_table(tables, n, s->name);
        const struct mk_conf_section *first = table && !table->repeatable && table->scope == MK_CONF_SERVER
                                                  ? mk_conf_tree_find(tree, s->name)
                                                  : s;
        if (!table)
            report_unknown_section(s, tables, n, report);
        else if (first != s)
            report_duplicate_section(s, first, report);
    }
    return mk_conf_report_out_of_memory(report) ? -ENOMEM : report->n_errors > n_errors ? -EINVAL : 0;
}
