/* SPDX-License-Identifier: Apache-2.0 */
#include "violation.h"

#include <sqlite3.h>
#include <string.h>

enum duda_sql_constraint sqlite_violation_kind(int extended, const char *message)
{
    switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return DUDA_SQL_UNIQUE;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return DUDA_SQL_FOREIGN_KEY;
    case SQLITE_CONSTRAINT_NOTNULL:
        return DUDA_SQL_NOT_NULL;
    case SQLITE_CONSTRAINT_CHECK:
        return DUDA_SQL_CHECK;
    case SQLITE_CONSTRAINT_TRIGGER: /* SQLite implements ON DELETE RESTRICT as an internal trigger */
        return strcmp(message, "FOREIGN KEY constraint failed") == 0 ? DUDA_SQL_FOREIGN_KEY
                                                                     : DUDA_SQL_OTHER_CONSTRAINT;
    default:
        return DUDA_SQL_OTHER_CONSTRAINT;
    }
}

/* Parses "users.first, users.last": sets the table, and shortens the text to "first, last". */
static void parse_columns(struct duda_sql_violation *violation, char *text)
{
    mk_str rest = mk_str_from_c(text);
    size_t dot = mk_str_find(rest, '.'), len = 0;
    if (dot == MK_STR_NONE)
        return;
    violation->table = mk_str_first(rest, dot);
    char *columns = text + dot + 1;
    while (rest.len) {
        mk_str column = mk_str_skip(mk_str_trim(mk_str_cut(&rest, ',')), dot + 1);
        if (len) {
            memcpy(columns + len, ", ", 2);
            len += 2;
        }
        memmove(columns + len, column.p, column.len);
        len += column.len;
    }
    violation->columns = mk_str_of(columns, len);
}

/* Parses "index 'users_lower_name'", which names an index on expressions. */
static bool parse_index(struct duda_sql_violation *violation, mk_str text)
{
    static const mk_str begin = MK_STR("index '");
    if (!mk_str_starts(text, begin) || text.len == begin.len)
        return false;
    violation->constraint = mk_str_skip(mk_str_first(text, text.len - 1), begin.len);
    return true;
}

struct duda_sql_violation sqlite_violation_parse(enum duda_sql_constraint kind, char *message)
{
    struct duda_sql_violation violation = {.kind = kind};
    char *names = strstr(message, " constraint failed: ");
    if (!names)
        return violation;
    names = strchr(names, ':') + 2;
    if (kind == DUDA_SQL_CHECK)
        violation.constraint = mk_str_from_c(names);
    else if ((kind == DUDA_SQL_UNIQUE || kind == DUDA_SQL_NOT_NULL) &&
             !parse_index(&violation, mk_str_from_c(names)))
        parse_columns(&violation, names);
    return violation;
}
