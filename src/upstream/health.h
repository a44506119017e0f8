/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a server is up, by the results of requests and checks. */
#ifndef MK_UPSTREAM_HEALTH_H
#define MK_UPSTREAM_HEALTH_H

#include "upstream/server.h"

bool mk_health_is_up(const struct mk_upstream_server *s, uint64_t now_ms);
/* Is it down by its checks, and not only by failures? Then it is not tried even if all are down. */
bool mk_health_is_check_failed(const struct mk_upstream_server *s);
/* How long it is still down by failures; 0: it is not. */
uint64_t mk_health_down_ms(const struct mk_upstream_server *s, uint64_t now_ms);
/* Its weight in thousandths: less than the whole in a slow start. */
unsigned mk_health_weight(const struct mk_upstream_server *s, uint64_t now_ms);

/* Does this error say that we have no memory or descriptor left? That is no fault of the server. */
bool mk_health_is_local_shortage(int error);

/* True: it was down by failures, and is up now. */
bool mk_health_record_success(const struct mk_upstream_server *s);
/* A request failed by its fault. True: it is down now, and was not before. */
bool mk_health_record_failure(const struct mk_upstream_server *s);
void mk_health_record_check(const struct mk_upstream_server *s, bool ok);
/* The response began after so long. */
void mk_health_record_latency(const struct mk_upstream_server *s, uint64_t us);
/* Shows its state. Is it up? */
bool mk_health_publish(const struct mk_upstream_server *s, bool is_resolved);

#endif
