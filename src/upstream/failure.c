/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/failure.h"

#include <errno.h>
#include <string.h>

#include "upstream/connect_error.h"
#include "upstream/health.h"

/* Minimum time between two log lines about a flapping server. */
enum { AGAIN_MS = 1000 };

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static struct mk_upstream_stats_health *shared_health(const struct mk_upstream_server *s)
{
    return mk_upstream_stats_health(&s->upstream->all->stats, s->stats_slot);
}

/* Is this a change, and may it be logged now? The first worker that notices logs it. */
static bool should_log_change(uint32_t *state, uint64_t *told_ms, uint32_t now)
{
    uint32_t old = LOAD(state);
    uint64_t now_ms = mk_clock_ms(), last = LOAD(told_ms);
    if (old == now || (last && now_ms - last < AGAIN_MS))
        return false;
    if (!__atomic_compare_exchange_n(state, &old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    STORE(told_ms, now_ms);
    return true;
}

#define SAY(w, s, level, fmt, ...)                                                                           \
    mk_worker_log(w, level, "upstream %.*s: the server %.*s " fmt, MK_STR_ARG((s)->upstream->name),          \
                  MK_STR_ARG((s)->name), __VA_ARGS__)

/* The server is up again: requests of all workers may use it. */
static void wake_waiting_workers(const struct mk_upstream_server *s)
{
    if (s->upstream->max)
        mk_conn_limit_wake_waiters(&s->upstream->all->limit, s->stats_slot);
}

/* ---- Requests and connections ---- */

bool mk_upstream_failure_report(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                                const char *why)
{
    struct mk_upstream_stats_health *l = shared_health(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    bool is_out = mk_health_record_failure(s);
    if (should_log_change(&l->trouble, &l->trouble_ms, (uint32_t)-error))
        SAY(w, s, MK_LOG_ERROR, "failed: %s", why ? why : mk_connect_error_text(error));
    if (is_out && s->upstream->n > 1)
        SAY(w, s, MK_LOG_WARN, "gets no requests for %u ms, after %u failure%s in a row", settings->fail_ms,
            settings->max_fails, settings->max_fails == 1 ? "" : "s");
    return is_out;
}

void mk_upstream_failure_clear(struct mk_worker *w, const struct mk_upstream_server *s)
{
    struct mk_upstream_stats_health *l = shared_health(s);
    bool is_back = mk_health_record_success(s);
    if (is_back)
        wake_waiting_workers(s);
    if (LOAD(&l->trouble) && should_log_change(&l->trouble, &l->trouble_ms, 0))
        SAY(w, s, MK_LOG_INFO, "%s", is_back ? "is back: it answers again" : "answers again");
}

/* ---- Checks: only the first worker makes them ---- */

bool mk_upstream_failure_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                                      const char *why)
{
    bool was_out = mk_health_is_check_failed(s), was_up = mk_health_is_up(s, mk_clock_ms());
    mk_health_record_check(s, ok);
    if (!was_up && mk_health_is_up(s, mk_clock_ms()))
        wake_waiting_workers(s);
    bool is_out = mk_health_is_check_failed(s);
    if (is_out && !was_out)
        SAY(w, s, MK_LOG_WARN, "fails its health check: %s", why);
    else if (was_out && !is_out)
        SAY(w, s, MK_LOG_INFO, "%s", "passes its health check");
    return is_out && !was_out;
}

/* ---- Names ---- */

void mk_upstream_failure_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *why)
{
    struct mk_upstream_stats_health *l = shared_health(s);
    if (!should_log_change(&l->is_nameless, &l->nameless_ms, why != NULL))
        return;
    if (why)
        SAY(w, s, MK_LOG_ERROR, "has no address, its name does not resolve: %s", why);
    else
        SAY(w, s, MK_LOG_INFO, "%s", "has an address: its name resolves again");
}
