/* SPDX-License-Identifier: Apache-2.0 */
#include "http/trailer.h"

#include "http/header.h"

bool mk_trailer_is_allowed(mk_str name)
{
    switch ((int)mk_header_find_id(name)) {
    case MK_HEADER_OTHER:
    case MK_HEADER_ETAG:
    case MK_HEADER_LINK:
    case MK_HEADER_VIA:
        return mk_is_token(name) && !mk_str_eq_nocase(name, MK_STR("Warning"));
    default: /* other known names affect the meaning of a message */
        return false;
    }
}

bool mk_trailer_next(mk_str *section, mk_str *name, mk_str *value)
{
    mk_str line = mk_str_cut(section, '\n');
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    if (!line.len)
        return false;
    *name = mk_str_cut(&line, ':');
    *value = mk_str_trim(line);
    return true;
}
