/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that may use a connection: all, one, or none, because it is about to close. */
#ifndef DUDA_POSTGRES_CONN_USE_H
#define DUDA_POSTGRES_CONN_USE_H

#include "conn_type.h"

/* May a statement of any handler be sent? */
bool postgres_conn_can_send(const struct postgres_conn *c);
bool postgres_conn_is_reserved(const struct postgres_conn *c);
/* Does it close once it is idle? */
bool postgres_conn_is_retired(const struct postgres_conn *c);
/* Reserves a shared connection for a transaction or a COPY. A reservation outlives the loss of the
 * connection. */
void postgres_conn_reserve(struct postgres_conn *c);
void postgres_conn_release(struct postgres_conn *c);
/* Retires the connection, because no other handler may use its session: it closes after its last statement,
 * or after its reservation. Does nothing unless it is up. */
void postgres_conn_retire(struct postgres_conn *c);
/* The connection closes: its next session is not retired. */
void postgres_conn_on_close(struct postgres_conn *c);

#endif
