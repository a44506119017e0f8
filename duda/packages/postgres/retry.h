/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by a result whether to retry a failed statement, and whether its connection is still usable. */
#ifndef DUDA_POSTGRES_RETRY_H
#define DUDA_POSTGRES_RETRY_H

#include "conn_type.h"

/* Inspects a result of the first query in flight. Sets query->repeats, and may retire the connection. */
void postgres_retry_decide(struct postgres_conn *c, struct postgres_query *query, const PGresult *result);

#endif
