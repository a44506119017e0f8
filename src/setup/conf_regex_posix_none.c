/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/conf_regex.h"

struct mk_regex *mk_conf_regex_new_posix(struct mk_arena *arena, struct mk_conf_report *report,
                                         const struct mk_conf_source_pos *at, mk_str pattern)
{
    (void)arena;
    mk_conf_report_error(report, at, "`%.*s`: this server was built without expressions of Monkey 1.6",
                         MK_CONF_REPORT_ARG(pattern));
    mk_conf_report_hint(report, "write the pattern in [ROUTES], or build with MK_POSIX_REGEX=ON");
    return NULL;
}
