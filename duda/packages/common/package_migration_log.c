/* SPDX-License-Identifier: Apache-2.0 */
#include "common/package_migration_log.h"

enum { FIRST_MIN_MS = 1000, MS_PER_S = 1000 };

static void log_migration(const struct package_migration_log *log, const struct package_migration_state *s,
                          uint64_t took_ms)
{
    unsigned long long seconds = took_ms / MS_PER_S;
    if (s->running)
        mk_worker_log(log->worker, MK_LOG_INFO,
                      "[%s] %.*s: migration %.*s%s%.*s runs, %llu s after the start", log->section,
                      MK_STR_ARG(log->name), MK_STR_ARG(s->running->name),
                      log->service.len ? " of service " : "", MK_STR_ARG(log->service), seconds);
    else
        mk_worker_log(log->worker, MK_LOG_INFO,
                      "[%s] %.*s: waits for migrations of another worker or program for %llu s", log->section,
                      MK_STR_ARG(log->name), seconds);
}

static void on_timer(struct mk_timer *t)
{
    struct package_migration_log *log = MK_CONTAINER(t, struct package_migration_log, timer);
    struct package_migration_state state = log->get_state(log->ctx);
    if (!state.since_ms)
        return;
    uint64_t took_ms = mk_worker_now_ms(log->worker) - state.since_ms;
    if (took_ms >= log->first_ms)
        log_migration(log, &state, took_ms);
    mk_timer_set(&log->timer, log->worker,
                 took_ms < log->first_ms ? log->first_ms - (uint32_t)took_ms
                 : took_ms < INT32_MAX   ? (uint32_t)took_ms
                                         : INT32_MAX);
}

void package_migration_log_init(struct package_migration_log *log, uint32_t timeout_ms)
{
    log->first_ms = timeout_ms > FIRST_MIN_MS ? timeout_ms : FIRST_MIN_MS;
    mk_timer_init(&log->timer, on_timer);
}

void package_migration_log_start(struct package_migration_log *log)
{
    if (!mk_timer_is_set(&log->timer))
        mk_timer_set(&log->timer, log->worker, log->first_ms);
}

void package_migration_log_stop(struct package_migration_log *log)
{
    mk_timer_stop(&log->timer);
}
