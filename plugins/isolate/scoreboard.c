/* SPDX-License-Identifier: Apache-2.0 */
#include "scoreboard.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { PATIENCE_MS = 2000 };

static bool is_process_alive(int32_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

/* While a process takes a slot, its negated pid is stored there, so that two processes cannot take one
 * slot. */
static bool is_slot_taken(int32_t pid)
{
    return is_process_alive(pid < 0 ? -pid : pid);
}

/* Frees the slot if its process is dead: another process may get the same process ID later. */
static bool is_slot_alive(struct isolate_slot *s)
{
    int32_t pid = atomic_load(&s->pid);
    if (is_process_alive(pid))
        return true;
    if (pid > 0)
        atomic_compare_exchange_strong(&s->pid, &pid, 0);
    return false;
}

struct isolate_slot *isolate_scoreboard_acquire_slot(struct isolate_scoreboard *scoreboard, uint64_t version)
{
    int32_t self = (int32_t)getpid();
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++)
        (void)is_slot_alive(&scoreboard->slots[i]);
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++) {
        struct isolate_slot *s = &scoreboard->slots[i];
        int32_t before = atomic_load(&s->pid);
        if (is_slot_taken(before) || !atomic_compare_exchange_strong(&s->pid, &before, -self))
            continue;
        atomic_store(&s->state, ISOLATE_WORKER_STARTS);
        atomic_store(&s->version, version);
        atomic_store_explicit(&s->pid, self, memory_order_release);
        return s;
    }
    return NULL;
}

/* `version` is 0 for any version. `states` is a mask of states. */
static bool has_matching_worker(struct isolate_scoreboard *scoreboard, uint64_t version, unsigned states)
{
    for (unsigned i = 0; i < ISOLATE_SLOTS; i++) {
        struct isolate_slot *s = &scoreboard->slots[i];
        bool fits = (1U << (atomic_load_explicit(&s->state, memory_order_acquire) & 31) & states) &&
                    (!version || atomic_load(&s->version) == version);
        if (fits && is_slot_alive(s))
            return true;
    }
    return false;
}

bool isolate_scoreboard_is_serving(struct isolate_scoreboard *scoreboard)
{
    return has_matching_worker(scoreboard, 0, 1U << ISOLATE_WORKER_SERVES);
}

bool isolate_scoreboard_is_draining(struct isolate_scoreboard *scoreboard)
{
    return has_matching_worker(scoreboard, 0, 1U << ISOLATE_WORKER_DRAINS);
}

bool isolate_scoreboard_serves_version(struct isolate_scoreboard *scoreboard, uint64_t version)
{
    return has_matching_worker(scoreboard, version, 1U << ISOLATE_WORKER_SERVES);
}

bool isolate_scoreboard_update_down(struct isolate_scoreboard *scoreboard, uint64_t now_ms)
{
    if (isolate_scoreboard_is_serving(scoreboard)) {
        if (atomic_load_explicit(&scoreboard->down_ms, memory_order_relaxed))
            atomic_store(&scoreboard->down_ms, 0);
        return false;
    }
    uint64_t since = 0;
    if (atomic_compare_exchange_strong(&scoreboard->down_ms, &since, now_ms))
        return false;
    return now_ms > since + PATIENCE_MS;
}
