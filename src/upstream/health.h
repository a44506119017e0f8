/* SPDX-License-Identifier: Apache-2.0 */
/* Health of a server, from request results and health checks. Each change is logged once, by the first worker
 * that sees it. */
#ifndef MK_UPSTREAM_HEALTH_H
#define MK_UPSTREAM_HEALTH_H

#include "upstream/server.h"

bool mk_health_is_up(const struct mk_upstream_server *s, uint64_t now_ms);
/* Is the server down because of health checks, not just failures? Such a server is not tried even if all
 * servers are down. */
bool mk_health_is_check_failed(const struct mk_upstream_server *s);
/* How long the server remains down because of failures; 0: it is not down. */
uint64_t mk_health_down_ms(const struct mk_upstream_server *s, uint64_t now_ms);
/* The server's weight in thousandths; reduced during slow start. */
unsigned mk_health_weight(const struct mk_upstream_server *s, uint64_t now_ms);

/* Is this a local shortage of memory or descriptors, and not the server's fault? */
bool mk_health_is_local_shortage(int error);

/* Records a success. True: the server was down because of failures, and is now up. */
bool mk_health_record_success(const struct mk_upstream_server *s);
/* Records that a request failed because of the server. True: the server was up, and is now down. */
bool mk_health_record_failure(const struct mk_upstream_server *s);
void mk_health_record_check(const struct mk_upstream_server *s, bool ok);
/* Records the time to the first byte of the response. */
void mk_health_record_latency(const struct mk_upstream_server *s, uint64_t us);
/* Publishes the state of the server. Returns whether the server is up. */
bool mk_health_publish(const struct mk_upstream_server *s, bool is_resolved);

/* ---- Recorded and logged ---- */

/* Records a failure of the server. `message`: static text, or NULL for the text of `error`. True: the server
 * is now down. */
bool mk_health_report_failure(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                              const char *message);
/* The server responded. */
void mk_health_report_success(struct mk_worker *w, const struct mk_upstream_server *s);
/* Records the result of a health check. True: the server is now down. */
bool mk_health_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                            const char *message);
/* Records the result of a name lookup. `message`: the resolver's message; NULL: success. */
void mk_health_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *message);

#endif
