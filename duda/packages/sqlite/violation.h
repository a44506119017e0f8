/* SPDX-License-Identifier: Apache-2.0 */
/* Violated constraints, as SQLite reports them: by a result code and an English message. */
#ifndef DUDA_SQLITE_VIOLATION_H
#define DUDA_SQLITE_VIOLATION_H

#include <duda/sql.h>

/* Returns the kind of the constraint for an extended result code SQLITE_CONSTRAINT_... */
enum duda_sql_constraint sqlite_violation_kind(int extended, const char *message);
/* Parses the message, and changes it: the texts of the result are parts of it. */
struct duda_sql_violation sqlite_violation_parse(enum duda_sql_constraint kind, char *message);

#endif
