/* SPDX-License-Identifier: Apache-2.0 */
/* What a result says beside its rows: whether a statement may be right although it has failed, and whether its
 * connection is still of use. */
#ifndef DUDA_POSTGRES_RETRY_H
#define DUDA_POSTGRES_RETRY_H

#include "conn_type.h"

/* Looks at a result of job, the first one under way. Sets job->repeats and c->retires. */
void postgres_retry_decide(struct postgres_conn *c, struct postgres_query *query, const PGresult *result);

#endif
