/* SPDX-License-Identifier: Apache-2.0 */
/* Health of a server, from request results and health checks. Each change is logged once, by the first worker
 * that sees it. */
#ifndef MK_UPSTREAM_HEALTH_H
#define MK_UPSTREAM_HEALTH_H

#include "base/compiler.h"
#include "upstream/server.h"

static inline struct mk_upstream_stats_health *mk_health_shared(const struct mk_upstream_server *s)
{
    return mk_upstream_stats_health(&s->upstream->all->stats, s->stats_slot);
}

static inline const struct mk_upstream_stats_admin *mk_health_admin(const struct mk_upstream_server *s)
{
    return &s->upstream->all->stats.admin[s->stats_slot];
}

bool mk_health_is_up(const struct mk_upstream_server *s, uint64_t now_ms);
/* Is the server down because of health checks, not just failed requests? Such a server is not tried even if
 * all servers are down. Ignores checks that the current configuration has disabled: shared memory outlives a
 * configuration. */
static inline bool mk_health_is_check_failed(const struct mk_upstream_server *s)
{
    return s->upstream->settings->check.len &&
           __atomic_load_n(&mk_health_shared(s)->is_check_failed, __ATOMIC_RELAXED);
}
/* How long the server remains down because of failures; 0: it is not down. */
uint64_t mk_health_down_ms(const struct mk_upstream_server *s, uint64_t now_ms);
static inline enum mk_server_mode mk_health_mode(const struct mk_upstream_server *s)
{
    return (enum mk_server_mode)__atomic_load_n(&mk_health_admin(s)->mode, __ATOMIC_RELAXED);
}
/* The weight in the configuration, or the one that the administrator has set. */
static inline unsigned mk_health_full_weight(const struct mk_upstream_server *s)
{
    unsigned set = __atomic_load_n(&mk_health_admin(s)->weight, __ATOMIC_RELAXED);
    return set ? set : s->weight;
}
/* The server's weight in thousandths; reduced during slow start. */
unsigned mk_health_weight(const struct mk_upstream_server *s, uint64_t now_ms);

/* Is this a local shortage of memory or descriptors, and not the server's fault? */
bool mk_health_is_local_shortage(int error);

/* Records a success. True: the server was down because of failures, and is now up. */
bool mk_health_record_success(const struct mk_upstream_server *s);
/* Records that a request failed because of the server. True: the server was up, and is now down. */
bool mk_health_record_failure(const struct mk_upstream_server *s);
void mk_health_record_check(const struct mk_upstream_server *s, bool ok);
/* Publishes the state of the server. True: the server is up, and its slow start is over. */
bool mk_health_publish(const struct mk_upstream_server *s, bool is_resolved);

/* ---- Recorded and logged ---- */

/* Records a failure of the server. `message`: static text, or NULL for the text of `error`. True: the server
 * is now down. */
bool mk_health_report_failure(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                              const char *message);
/* Counts a response or a failure for OutlierErrors. True: the server is ejected now. */
bool mk_health_count_response(struct mk_worker *w, const struct mk_upstream_server *s, bool is_error);
/* Records that the server responded after a failure: it may be up again. */
void mk_health_report_recovery(struct mk_worker *w, const struct mk_upstream_server *s);
/* Records that the server responded. */
static inline void mk_health_report_success(struct mk_worker *w, const struct mk_upstream_server *s)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    if (MK_UNLIKELY(__atomic_load_n(&l->fails, __ATOMIC_RELAXED) ||
                    __atomic_load_n(&l->down_until_ms, __ATOMIC_RELAXED) ||
                    __atomic_load_n(&l->trouble, __ATOMIC_RELAXED)))
        mk_health_report_recovery(w, s);
}
/* Records the result of a health check. True: the server is now down. */
bool mk_health_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                            const char *message);
/* Records the result of a name lookup. `message`: error message of the resolver; NULL: success. */
void mk_health_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *message);

#endif
