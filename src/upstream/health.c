/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/health.h"

#include <errno.h>

#include "upstream/connect_error.h"

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, n)   __atomic_fetch_add(p, n, __ATOMIC_RELAXED)

enum { WHOLE = 1000 };

/* Minimum time between two log lines about a flapping server. */
enum { AGAIN_MS = 1000 };

/* ---- State ---- */

enum { EJECTIONS_MAX = 10 }; /* by how much repeated ejections multiply OutlierTime */

/* How long the server remains ejected. Ignores a time that does not fit the current configuration. */
static uint64_t ejection_left_ms(const struct mk_upstream_server *s, uint64_t now_ms)
{
    const struct mk_upstream_settings *settings = s->upstream->settings;
    if (MK_LIKELY(!settings->outlier_percent))
        return 0;
    uint64_t until = LOAD(&mk_health_shared(s)->ejected_until_ms);
    bool is_ejected =
        until > now_ms && until - now_ms <= (uint64_t)settings->outlier_eject_ms * EJECTIONS_MAX;
    return is_ejected ? until - now_ms : 0;
}

/* Ignores the recorded time if it does not fit MaxFails and HoldDown of the current configuration: shared
 * memory outlives a configuration. */
uint64_t mk_health_down_ms(const struct mk_upstream_server *s, uint64_t now_ms)
{
    const struct mk_upstream_settings *settings = s->upstream->settings;
    uint64_t until = LOAD(&mk_health_shared(s)->down_until_ms);
    bool is_down = settings->max_fails && until > now_ms && until - now_ms <= settings->fail_ms;
    uint64_t down_ms = is_down ? until - now_ms : 0, ejected_ms = ejection_left_ms(s, now_ms);
    return ejected_ms > down_ms ? ejected_ms : down_ms;
}

bool mk_health_is_up(const struct mk_upstream_server *s, uint64_t now_ms)
{
    return !mk_health_down_ms(s, now_ms) && !mk_health_is_check_failed(s);
}

unsigned mk_health_weight(const struct mk_upstream_server *s, uint64_t now_ms)
{
    uint64_t since = LOAD(&mk_health_shared(s)->up_since_ms), slow_ms = s->upstream->settings->slow_ms;
    uint64_t age = now_ms > since ? now_ms - since : 0;
    unsigned weight = mk_health_full_weight(s);
    if (!since || !slow_ms || age >= slow_ms)
        return weight * WHOLE;
    return 1 + (unsigned)(weight * WHOLE * age / slow_ms);
}

bool mk_health_is_local_shortage(int error)
{
    return error == -ENOMEM || error == -ENOBUFS || error == -EMFILE || error == -ENFILE;
}

static void mark_up(struct mk_upstream_stats_health *l)
{
    STORE(&l->up_since_ms, mk_clock_ms());
    STORE(&l->down_until_ms, 0);
}

bool mk_health_record_success(const struct mk_upstream_server *s)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    if (LOAD(&l->fails))
        STORE(&l->fails, 0);
    if (!LOAD(&l->down_until_ms))
        return false;
    mark_up(l);
    return true;
}

bool mk_health_record_failure(const struct mk_upstream_server *s)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    mk_upstream_stats_add_shared(s->shared, MK_UPSTREAM_STATS_FAILURES);
    uint32_t fails = ADD(&l->fails, 1) + 1;
    if (!settings->max_fails || fails < settings->max_fails)
        return false;
    uint64_t now = mk_clock_ms(),
             until = __atomic_exchange_n(&l->down_until_ms, now + settings->fail_ms, __ATOMIC_RELAXED);
    return until <= now;
}

void mk_health_record_check(const struct mk_upstream_server *s, bool ok)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    bool was_failed = LOAD(&l->is_check_failed);
    uint32_t needed = ok ? settings->check_rise : settings->check_fall;
    mk_upstream_stats_add_shared(s->shared, MK_UPSTREAM_STATS_CHECKS);
    if (!ok)
        mk_upstream_stats_add_shared(s->shared, MK_UPSTREAM_STATS_CHECKS_FAILED);
    uint32_t others = ok == was_failed ? LOAD(&l->checks_in_a_row) + 1 : 0;
    bool changes = others && others >= needed;
    STORE(&l->checks_in_a_row, changes ? 0 : others);
    if (changes)
        STORE(&l->is_check_failed, !ok);
    if (!ok || (was_failed && !changes))
        return;
    STORE(&l->fails, 0);
    if (changes || LOAD(&l->down_until_ms))
        mark_up(l);
}

bool mk_health_publish(const struct mk_upstream_server *s, bool is_resolved)
{
    uint64_t now = mk_clock_ms();
    enum mk_upstream_state state = MK_UPSTREAM_UP;
    enum mk_server_mode mode = mk_health_mode(s);
    if (mode != MK_SERVER_ENABLED)
        state = mode < MK_SERVER_REMOVED ? MK_UPSTREAM_DRAINING : MK_UPSTREAM_REMOVED;
    else if (!is_resolved)
        state = MK_UPSTREAM_UNRESOLVED;
    else if (ejection_left_ms(s, now) && !mk_health_is_check_failed(s))
        state = MK_UPSTREAM_EJECTED;
    else if (!mk_health_is_up(s, now))
        state = MK_UPSTREAM_DOWN;
    else if (mk_health_weight(s, now) < mk_health_full_weight(s) * WHOLE)
        state = MK_UPSTREAM_SLOW_START;
    if (s->shared && LOAD(&mk_health_shared(s)->series)) {
        STORE(&s->shared[MK_UPSTREAM_STATS_STATE], state);
        STORE(&s->shared[MK_UPSTREAM_STATS_IS_UP],
              state == MK_UPSTREAM_UP || state == MK_UPSTREAM_SLOW_START);
    }
    return state == MK_UPSTREAM_UP;
}

/* ---- Log ---- */

/* Returns true to the worker that may log the change: the first one that notices it. */
static bool claim_change_to_log(uint32_t *state, uint64_t *told_ms, uint32_t now)
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

#define LOG_SERVER(w, s, level, fmt, ...)                                                                    \
    mk_worker_log(w, level, "upstream %.*s: the server %.*s " fmt, MK_STR_ARG((s)->upstream->name),          \
                  MK_STR_ARG((s)->name), __VA_ARGS__)

/* Call it when the server is up again: wakes the workers whose requests wait for the server. */
static void wake_waiting_workers(const struct mk_upstream_server *s)
{
    if (s->upstream->max)
        mk_conn_limit_wake_waiters(&s->upstream->all->limit, s->stats_slot);
}

/* ---- Ejection by the share of errors ---- */

/* Is there another server that can take over the requests of this one? Backup servers get requests only when all
 * others are down, so they take over only from another backup. */
static bool has_working_peer(const struct mk_upstream_server *s, uint64_t now)
{
    const struct mk_upstream *u = s->upstream;
    for (unsigned i = 0; i < u->n; i++) {
        const struct mk_upstream_server *other = &u->servers[i];
        if (other != s && mk_health_mode(other) == MK_SERVER_ENABLED && mk_health_is_up(other, now) &&
            (s->backup || !other->backup))
            return true;
    }
    return false;
}

/* May the server be ejected? The first ejection ignores OutlierMax; the last working server is never ejected. */
static bool may_eject(const struct mk_upstream_server *s, uint64_t now)
{
    const struct mk_upstream *u = s->upstream;
    unsigned n = 0, ejected = 0;
    for (unsigned i = 0; i < u->n; i++)
        if (mk_health_mode(&u->servers[i]) == MK_SERVER_ENABLED) {
            n++;
            ejected += ejection_left_ms(&u->servers[i], now) > 0;
        }
    return has_working_peer(s, now) &&
           (!ejected || (ejected + 1) * 100 <= u->settings->outlier_max_percent * n);
}

/* False: another worker has ejected the server just now. */
static bool eject(struct mk_worker *w, const struct mk_upstream_server *s, uint64_t now, unsigned n,
                  unsigned errors)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    uint64_t until = LOAD(&l->ejected_until_ms);
    uint32_t repeated = LOAD(&l->ejections);
    bool is_repeated = until && now - until < (uint64_t)settings->outlier_eject_ms + settings->outlier_ms;
    repeated = !is_repeated ? 1 : repeated < EJECTIONS_MAX ? repeated + 1 : EJECTIONS_MAX;
    uint64_t ms = (uint64_t)settings->outlier_eject_ms * repeated;
    if (until > now || !__atomic_compare_exchange_n(&l->ejected_until_ms, &until, now + ms, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    STORE(&l->ejections, repeated);
    STORE(&l->up_since_ms, now + ms); /* SlowStart */
    STORE(&l->counted_since_ms, 0);
    mk_upstream_stats_add_shared(s->shared, MK_UPSTREAM_STATS_EJECTIONS);
    LOG_SERVER(w, s, MK_LOG_WARN, "is ejected for %llu ms: %u of %u requests to it failed",
               (unsigned long long)ms, errors, n);
    return true;
}

bool mk_health_count_response(struct mk_worker *w, const struct mk_upstream_server *s, bool is_error)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    uint64_t now = mk_clock_ms(), since = LOAD(&l->counted_since_ms);
    if (now - since >= settings->outlier_ms &&
        __atomic_compare_exchange_n(&l->counted_since_ms, &since, now, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        STORE(&l->responses, 0);
        STORE(&l->errors, 0);
    }
    uint32_t n = ADD(&l->responses, 1) + 1, errors = is_error ? ADD(&l->errors, 1) + 1 : 0;
    return errors && n >= settings->outlier_requests &&
           (uint64_t)errors * 100 >= (uint64_t)settings->outlier_percent * n && may_eject(s, now) &&
           eject(w, s, now, n, errors);
}

/* ---- Failures and checks ---- */

bool mk_health_report_failure(struct mk_worker *w, const struct mk_upstream_server *s, int error,
                              const char *message)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    const struct mk_upstream_settings *settings = s->upstream->settings;
    bool is_out = mk_health_record_failure(s);
    if (claim_change_to_log(&l->trouble, &l->trouble_ms, (uint32_t)-error))
        LOG_SERVER(w, s, MK_LOG_ERROR, "failed: %s", message ? message : mk_connect_error_text(error));
    if (is_out && s->upstream->n > 1)
        LOG_SERVER(w, s, MK_LOG_WARN, "gets no requests for %u ms, after %u failure%s in a row",
                   settings->fail_ms, settings->max_fails, settings->max_fails == 1 ? "" : "s");
    if (settings->outlier_percent)
        (void)mk_health_count_response(w, s, true);
    return is_out;
}

void mk_health_report_recovery(struct mk_worker *w, const struct mk_upstream_server *s)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    bool is_back = mk_health_record_success(s);
    if (is_back)
        wake_waiting_workers(s);
    if (LOAD(&l->trouble) && claim_change_to_log(&l->trouble, &l->trouble_ms, 0))
        LOG_SERVER(w, s, MK_LOG_INFO, "%s", is_back ? "is back: it answers again" : "answers again");
}

/* Called only in the first worker, which runs the checks. */
bool mk_health_report_check(struct mk_worker *w, const struct mk_upstream_server *s, bool ok,
                            const char *message)
{
    bool was_out = mk_health_is_check_failed(s), was_up = mk_health_is_up(s, mk_clock_ms());
    mk_health_record_check(s, ok);
    if (!was_up && mk_health_is_up(s, mk_clock_ms()))
        wake_waiting_workers(s);
    bool is_out = mk_health_is_check_failed(s);
    if (is_out && !was_out)
        LOG_SERVER(w, s, MK_LOG_WARN, "fails its health check: %s", message);
    else if (was_out && !is_out)
        LOG_SERVER(w, s, MK_LOG_INFO, "%s", "passes its health check");
    return is_out && !was_out;
}

void mk_health_report_dns(struct mk_worker *w, const struct mk_upstream_server *s, const char *message)
{
    struct mk_upstream_stats_health *l = mk_health_shared(s);
    if (!claim_change_to_log(&l->is_nameless, &l->nameless_ms, message != NULL))
        return;
    if (message)
        LOG_SERVER(w, s, MK_LOG_ERROR, "has no address, because its name does not resolve: %s", message);
    else
        LOG_SERVER(w, s, MK_LOG_INFO, "%s", "has an address: its name resolves again");
}
