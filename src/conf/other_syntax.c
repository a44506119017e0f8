/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/other_syntax.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

mk_str mk_conf_other_syntax_tail(mk_str text)
{
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && i > 0 && (c == '#' || c == ';') && is_blank(text.p[i - 1]))
            return mk_str_skip(text, i);
    }
    bool ends = !quoted && text.len > 1 && text.p[text.len - 1] == ';';
    return ends ? mk_str_skip(text, text.len - 1) : (mk_str){NULL, 0};
}

const char *mk_conf_other_syntax_hint(mk_str tail)
{
    if (!tail.p)
        return NULL;
    if (tail.p[0] == '#')
        return "write the comment on a line of its own";
    return tail.len == 1 ? "a value must not end with `;`"
                         : "write the comment on a line of its own, beginning with `#`";
}
