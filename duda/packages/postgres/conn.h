/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL in pipeline mode, shared by statements of several handlers. */
#ifndef DUDA_POSTGRES_CONN_H
#define DUDA_POSTGRES_CONN_H

#include "conn_type.h"

/* Returns 0 or -ENOMEM; call postgres_conn_fini() in both cases. */
int postgres_conn_init(struct postgres_conn *c, struct mk_worker *w, const struct postgres_settings *settings,
                       struct postgres_resolver *hosts, const struct package_conn_ops *ops);
void postgres_conn_fini(struct postgres_conn *c);
/* Callbacks for the struct package_conn_ops that the owner of the connection passes to
 * postgres_conn_init(). */
void postgres_conn_connect(struct package_conn *conn);
void postgres_conn_close(struct package_conn *conn);
void postgres_conn_on_timeout(struct package_conn *conn);
void postgres_conn_finish_request(struct package_conn *conn, struct package_request *r, int error,
                                  bool is_sent);
/* Continues a connection attempt that waited for the resolver. */
void postgres_conn_on_resolved(struct postgres_conn *c);
/* Sends the query and takes ownership of it. If the connection is down, the query fails at once. */
void postgres_conn_send(struct postgres_conn *c, struct postgres_query *query);
/* Announces that more statements follow in this loop iteration, so that they are held back until the flush,
 * if possible. */
void postgres_conn_cork(struct postgres_conn *c);
/* Sends the collected statements. */
void postgres_conn_flush(struct postgres_conn *c);
/* Does nothing unless the connection is idle and not reserved. Closes the connection if it is retired;
 * otherwise deallocates prepared statements that are no longer used. */
void postgres_conn_on_idle(struct postgres_conn *c);
/* Sends a cancel request for the running statements, for which no handler waits any longer. The caller must
 * close the connection next. */
void postgres_conn_cancel_running(struct postgres_conn *c);
/* Returns whether an abandoned statement is running that has not been cancelled yet. */
bool postgres_conn_has_abandoned(const struct postgres_conn *c);
/* Cancels the abandoned statement. */
void postgres_conn_cancel_abandoned(struct postgres_conn *c);
/* Leaves pipeline mode and starts a COPY. The connection must be idle; from now on, the COPY uses the
 * connection's socket. On failure, returns false, and the caller must close the connection. */
bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner);
/* Returns to pipeline mode after all results of the COPY have been read. Returns false like
 * postgres_conn_begin_copy(). */
bool postgres_conn_end_copy(struct postgres_conn *c);

/* Returns NULL if out of memory. The query is neither prepared nor retried unless you set `is_query`. */
struct postgres_query *postgres_query_new(mk_str text, const struct duda_sql_value *values, size_t n);
/* Sets the error of the query. */
void postgres_query_fail(struct postgres_query *query, int error, mk_str section, const char *message);
void postgres_query_free(struct postgres_query *query);

#endif
