/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, written as ${NAME} or ${NAME:-default}: set by @SET, or else from the environment. */
#ifndef MK_CONF_VARS_H
#define MK_CONF_VARS_H

#include "conf/io.h"
#include "conf/report.h"
#include "conf/tree.h"

struct mk_conf_var;

struct mk_conf_vars {
    struct mk_arena *arena;
    const struct mk_conf_io *io;
    struct mk_conf_report *report;
    struct mk_conf_var *first;
    mk_str key; /* of the value; empty: @SET or @INCLUDE */
    struct mk_conf_env_values env_values;
    const struct mk_conf_env_value *set_values; /* in the value of the next mk_conf_vars_set() */
};

/* Is the string a variable name: letters, digits and `_`, not starting with a digit? */
bool mk_conf_vars_is_name(mk_str s);
/* Sets a variable, or replaces its value, which was expanded with an empty key. The name and the value are not
 * copied. */
void mk_conf_vars_set(struct mk_conf_vars *v, mk_str name, mk_str value);

/* Expands every reference in the text. Text without references is returned unchanged. `at` is the position of
 * the text's first byte. False: an error was reported, and *out may be an incomplete expansion. */
bool mk_conf_vars_expand(struct mk_conf_vars *v, mk_str text, const struct mk_conf_source_pos *at,
                         mk_str *out);
/* Writes the text with the `$` of every `${` doubled, so that mk_conf_vars_expand() returns the original
 * text. */
void mk_conf_vars_escape(mk_str text, struct mk_buf *out);

#endif
