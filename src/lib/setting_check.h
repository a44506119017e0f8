/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a single configuration line before the configuration is loaded. */
#ifndef MK_LIB_SETTING_CHECK_H
#define MK_LIB_SETTING_CHECK_H

#include "setup/settings.h"

/* Checks that the section accepts the key, and that the value is valid. Returns 0, or -EINVAL with the reason
 * in *error; always 0 for sections of plugins, which are not known yet. */
mk_err mk_setting_check(mk_str section, mk_str key, mk_str value, struct mk_buf *error) MK_MUST_USE;

/* Parses a value of Listen. */
mk_err mk_setting_check_listen(mk_str where, struct mk_listen *out, struct mk_buf *error) MK_MUST_USE;

/* Prints all problems, without a trailing newline. */
void mk_setting_print_problems(const struct mk_conf_report *report, struct mk_buf *out);

#endif
