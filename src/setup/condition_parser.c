/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/condition_parser.h"

bool mk_condition_parser_error(const struct mk_condition_parser *p, mk_str part, const char *what,
                               const char *expected)
{
    if (p->line)
        mk_conf_report_error(p->ctx->report, p->line, "`%.*s` is %s: expected %s", MK_CONF_REPORT_ARG(part),
                             what, expected);
    else
        mk_conf_ctx_error(p->ctx, part, "`%.*s` is %s: expected %s", MK_STR_ARG(mk_str_first(part, 80)), what,
                          expected);
    return false;
}
