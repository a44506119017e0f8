/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to an SQLite file. Only one thread at a time may use it. This code knows neither workers nor
 * handlers. */
#ifndef DUDA_SQLITE_SESSION_H
#define DUDA_SQLITE_SESSION_H

#include "session_type.h"

/* Runs a statement, and stores its rows or its error in s->rows. An empty text only rolls back. Blocks. */
void sqlite_session_run(struct sqlite_session *s, enum sqlite_use use, mk_str text,
                        const struct duda_sql_value *values, size_t n);
/* Opens a query as the cursor `number`, or reads the next n rows of a cursor, and closes it after the last
 * row. Both functions block, and store the rows, or the error, in s->rows. */
void sqlite_session_open_cursor(struct sqlite_session *s, uint64_t number, mk_str text,
                                const struct duda_sql_value *values, size_t n);
void sqlite_session_fetch(struct sqlite_session *s, uint64_t number, size_t n);
/* Closes the cursor, if it is still open. */
void sqlite_session_close_cursor(struct sqlite_session *s, uint64_t number);
void sqlite_session_close(struct sqlite_session *s);

#endif
