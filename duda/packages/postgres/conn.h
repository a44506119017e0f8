/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL in pipeline mode, shared by statements of several handlers. */
#ifndef DUDA_POSTGRES_CONN_H
#define DUDA_POSTGRES_CONN_H

#include "conn_type.h"

/* 0 or -ENOMEM; call postgres_conn_fini() in both cases. */
int postgres_conn_init(struct postgres_conn *c, struct mk_worker *w, const struct postgres_settings *settings,
                       struct postgres_resolver *hosts, const struct package_conn_ops *ops);
void postgres_conn_fini(struct postgres_conn *c);
/* Implements the connection's part of the owner's struct package_conn_ops. */
void postgres_conn_connect(struct package_conn *conn);
void postgres_conn_close(struct package_conn *conn);
void postgres_conn_on_timeout(struct package_conn *conn);
void postgres_conn_finish_request(struct package_conn *conn, struct package_request *r, int error,
                                  bool is_sent);
/* Continues a connection attempt that waited for the resolver. */
void postgres_conn_on_resolved(struct postgres_conn *c);
/* Takes ownership of the query; fails it if the connection is down. */
void postgres_conn_send(struct postgres_conn *c, struct postgres_query *query);
/* More statements follow in this loop iteration: holds them back until the flush, if possible. */
void postgres_conn_cork(struct postgres_conn *c);
/* Sends the collected statements. */
void postgres_conn_flush(struct postgres_conn *c);
/* If the connection is idle and not reserved: closes it if it is retired, and sweeps dead prepared
 * statements. */
void postgres_conn_on_idle(struct postgres_conn *c);
/* No handler waits for the running statements any longer: sends a cancel request. The connection must be
 * closed next. */
void postgres_conn_cancel_running(struct postgres_conn *c);
/* Is an abandoned statement still running that has not been cancelled yet? */
bool postgres_conn_has_abandoned(const struct postgres_conn *c);
/* Cancels the abandoned statement. */
void postgres_conn_cancel_abandoned(struct postgres_conn *c);
/* Leaves pipeline mode and starts a COPY: the owner uses the socket from now on. The connection must be idle.
 * False: it failed and must be closed. */
bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner);
/* All results of the COPY were read: the connection is up again. Returns like postgres_conn_begin_copy(). */
bool postgres_conn_end_copy(struct postgres_conn *c);

struct postgres_query *postgres_query_new(mk_str text, const struct duda_sql_value *values, size_t n);
/* Records an error in the query. */
void postgres_query_fail(struct postgres_query *query, int error, mk_str section, const char *message);
void postgres_query_free(struct postgres_query *query);

#endif
