/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to PostgreSQL in pipeline mode: statements of several handlers are under way at once. */
#ifndef DUDA_POSTGRES_CONN_H
#define DUDA_POSTGRES_CONN_H

#include "conn_type.h"

/* 0 or -ENOMEM; postgres_conn_fini() in both cases. */
int postgres_conn_init(struct postgres_conn *c, struct mk_worker *w, const struct postgres_settings *settings,
                       struct postgres_resolver *hosts, const struct package_conn_ops *ops);
void postgres_conn_fini(struct postgres_conn *c);
/* Those of its link, for its owner's struct package_conn_ops. */
void postgres_conn_connect(struct package_conn *l);
void postgres_conn_close(struct package_conn *l);
void postgres_conn_on_timeout(struct package_conn *l);
void postgres_conn_finish_request(struct package_conn *l, struct package_request *r, int error, bool is_sent);
/* Goes on, if it waits for what has been found. */
void postgres_conn_on_resolved(struct postgres_conn *c);
/* Takes the job; one that is down fails it. */
void postgres_conn_send(struct postgres_conn *c, struct postgres_query *query);
/* Several statements follow in this turn: keeps them back until the flush, as far as it can. */
void postgres_conn_cork(struct postgres_conn *c);
/* Sends what is gathered. */
void postgres_conn_flush(struct postgres_conn *c);
/* May it be given more statements? */
bool postgres_conn_can_send(const struct postgres_conn *c);
/* If nothing is under way, and nobody has reserved it: closes it if it retires, and tidies up. */
void postgres_conn_on_idle(struct postgres_conn *c);
/* Whatever is under way is of no use to anybody: tells the server. The connection is to be closed next. */
void postgres_conn_cancel_running(struct postgres_conn *c);
/* Is a statement at work that no handler waits for any more, and that the server was not told to stop? */
bool postgres_conn_has_abandoned(const struct postgres_conn *c);
/* Tells it to. */
void postgres_conn_cancel_abandoned(struct postgres_conn *c);
/* Leaves the pipeline and sends a COPY: from now on the socket is the owner's. It must be idle. False: it
 * cannot; then it is to fail. */
bool postgres_conn_begin_copy(struct postgres_conn *c, const char *text, void *owner);
/* All results of the COPY were taken: it is up again. As above. */
bool postgres_conn_end_copy(struct postgres_conn *c);

struct postgres_query *postgres_query_new(mk_str text, const struct duda_sql_value *values, size_t n);
/* Remembers an error. */
void postgres_query_fail(struct postgres_query *query, int error, mk_str section, const char *why);
void postgres_query_free(struct postgres_query *query);

#endif
