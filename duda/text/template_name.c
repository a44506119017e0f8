/* SPDX-License-Identifier: Apache-2.0 */
#include "text/template_name.h"

static bool is_loop_variable(mk_str name)
{
    return mk_str_eq(name, MK_STR("@index")) || mk_str_eq(name, MK_STR("@number")) ||
           mk_str_eq(name, MK_STR("@first")) || mk_str_eq(name, MK_STR("@last"));
}

enum duda_template_lookup duda_template_lookup_of(mk_str name)
{
    return mk_str_eq(name, MK_STR("."))            ? DUDA_LOOKUP_SELF
           : is_loop_variable(name)                ? DUDA_LOOKUP_LOOP
           : mk_str_starts(name, MK_STR("@"))      ? DUDA_LOOKUP_GLOBAL
           : mk_str_find(name, '.') != MK_STR_NONE ? DUDA_LOOKUP_PATH
                                                   : DUDA_LOOKUP_MEMBER;
}

bool duda_template_is_name(mk_str s)
{
    if (mk_str_eq(s, MK_STR(".")))
        return true;
    for (size_t i = 0; i < s.len; i++) {
        bool dot = s.p[i] == '.';
        if ((unsigned char)s.p[i] <= ' ' || (dot && (i == 0 || i + 1 == s.len || s.p[i + 1] == '.')))
            return false;
    }
    return s.len > 0;
}
