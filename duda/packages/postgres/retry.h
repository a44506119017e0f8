/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from the result of a failed statement whether to retry it, and whether its connection is still
 * usable. */
#ifndef DUDA_POSTGRES_RETRY_H
#define DUDA_POSTGRES_RETRY_H

#include "conn_type.h"

/* Inspects a result of the first query in flight. Sets query->repeats if it should be retried, and may retire
 * the connection. */
void postgres_retry_decide(struct postgres_conn *c, struct postgres_query *query, const PGresult *result);

#endif
