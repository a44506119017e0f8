/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that may use a connection: all, one, or none, because it is about to close. */
#ifndef DUDA_POSTGRES_CONN_USE_H
#define DUDA_POSTGRES_CONN_USE_H

#include "conn_type.h"

/* Returns whether the connection may send statements of all handlers. */
bool postgres_conn_can_send(const struct postgres_conn *c);
bool postgres_conn_is_reserved(const struct postgres_conn *c);
/* Returns whether the connection closes once it is idle. */
bool postgres_conn_is_retired(const struct postgres_conn *c);
/* Reserves a shared connection for a transaction or a COPY. The reservation stays when the connection is
 * lost. */
void postgres_conn_reserve(struct postgres_conn *c);
void postgres_conn_release(struct postgres_conn *c);
/* Retires the connection, because no other handler may use its session: it closes after its last statement or
 * reservation. Does nothing if the connection is not up. */
void postgres_conn_retire(struct postgres_conn *c);
/* Resets the state when the connection closes, so that its next session is not retired. */
void postgres_conn_on_close(struct postgres_conn *c);

#endif
