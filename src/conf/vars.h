/* SPDX-License-Identifier: Apache-2.0 */
/* Names that stand for text: set by @SET, else from the environment, written as ${NAME} or ${NAME:-default}.
 */
#ifndef MK_CONF_VARS_H
#define MK_CONF_VARS_H

#include "conf/read.h"

struct mk_conf_var;

struct mk_conf_vars {
    struct mk_arena *arena;
    const struct mk_conf_io *io;
    struct mk_conf_report *report;
    struct mk_conf_var *first;
};

/* Letters, digits and `_`, no digit first. */
bool mk_conf_vars_is_name(mk_str s);
/* Over an older value if there is one; the text is not copied. */
void mk_conf_vars_set(struct mk_conf_vars *v, mk_str name, mk_str value);

/* Replaces every reference; text without any comes out as it is. `at` is the place of the text's first byte.
 * On a mistake it is reported, `out` is what could be made of the text, and the answer is false. */
bool mk_conf_vars_expand(struct mk_conf_vars *v, mk_str text, const struct mk_conf_place *at, mk_str *out);
/* Doubles the `$` of what looks like a reference, so that it comes out of mk_conf_vars_expand() as it is. */
void mk_conf_vars_escape(mk_str text, struct mk_buf *out);

#endif
