/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a single configuration line before the configuration is loaded. */
#ifndef MK_LIB_SETTING_CHECK_H
#define MK_LIB_SETTING_CHECK_H

#include "setup/settings.h"

/* Does that server section have the key, and is the value valid? -EINVAL: *error. Plugin sections are not
 * known yet: 0. */
mk_err mk_setting_check(mk_str section, mk_str key, mk_str value, struct mk_buf *error) MK_MUST_USE;

/* Parses a value of Listen. */
mk_err mk_setting_check_listen(mk_str where, struct mk_listen *out, struct mk_buf *error) MK_MUST_USE;

/* Prints all problems, without the last line end. */
void mk_setting_print_problems(const struct mk_conf_report *report, struct mk_buf *out);

#endif
