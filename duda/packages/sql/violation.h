/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SQL_VIOLATION_H
#define DUDA_SQL_VIOLATION_H

#include <duda/sql_backend.h>

/* Stores a copy for duda_sql_last_violation(). */
void sql_violation_remember(struct duda_ctx *d, const struct duda_sql_violation *violation);

#endif
