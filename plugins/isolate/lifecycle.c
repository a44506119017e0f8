/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle.h"

#include <signal.h>
#include <stddef.h>

enum {
    START_MS = 60000,
    YOUNG_MS = 1000,
    PAUSE_MS = 100,
    PAUSE_MAX_MS = 10000,
    DRAIN_MS = 70000 /* longer than the DrainTimeout after which the group itself exits */
};

/* ---- States ---- */

#define TO(state)      MK_STATE_TO(ISOLATE_##state)
#define PENDING(state) MK_STATE_TO(ISOLATE_PENDING_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(ISOLATE_DOWN, "down", TO(STARTING) | TO(ENDED)),
    MK_STATE_ROW(ISOLATE_STARTING, "starting", TO(SERVING) | TO(DOWN) | TO(RESTARTING) | TO(DRAINING)),
    MK_STATE_ROW(ISOLATE_SERVING, "serving", TO(DOWN) | TO(DRAINING)),
    MK_STATE_ROW(ISOLATE_RESTARTING, "restarting", TO(DOWN) | TO(DRAINING)),
    MK_STATE_ROW(ISOLATE_DRAINING, "draining", TO(ENDED)),
    MK_STATE_ROW(ISOLATE_ENDED, "ended", 0),
};

static const struct mk_state_table pendings = {
    MK_STATE_ROW(ISOLATE_PENDING_START, "start", PENDING(RELOAD) | PENDING(RELOAD_BEGUN) | PENDING(NONE)),
    MK_STATE_ROW(ISOLATE_PENDING_RELOAD, "reload", PENDING(RELOAD) | PENDING(RELOAD_BEGUN) | PENDING(NONE)),
    MK_STATE_ROW(ISOLATE_PENDING_RELOAD_BEGUN, "reload begun",
                 PENDING(RELOAD) | PENDING(RELOAD_BEGUN) | PENDING(NONE)),
    MK_STATE_ROW(ISOLATE_PENDING_NONE, "none", PENDING(RELOAD) | PENDING(RELOAD_BEGUN)),
};

static const char *state_invariant(const void *owner)
{
    const struct isolate_lifecycle *l = owner;
    return l->state.current == ISOLATE_DRAINING && !l->end_ms ? "it has a time to end" : NULL;
}

/* A process that starts reads the new configuration, so a reload cannot stay pending during a restart. */
static const char *pending_invariant(const void *owner)
{
    const struct isolate_lifecycle *l = owner;
    return l->pending.current == ISOLATE_PENDING_RELOAD && l->state.current == ISOLATE_RESTARTING
               ? "a process that starts again has the new configuration"
               : NULL;
}

const struct mk_state_machine isolate_lifecycle_machine = {"isolated group", &states, ISOLATE_STATES,
                                                           state_invariant};
const struct mk_state_machine isolate_lifecycle_pending_machine = {"order of the master", &pendings,
                                                                   ISOLATE_PENDINGS, pending_invariant};

static void set_state(struct isolate_lifecycle *l, enum isolate_state to)
{
    mk_state_move(&l->state, &isolate_lifecycle_machine, l, to);
}

static void set_pending(struct isolate_lifecycle *l, enum isolate_pending to)
{
    mk_state_move(&l->pending, &isolate_lifecycle_pending_machine, l, to);
}

/* ---- Time ---- */

/* Returns when the next action is due; UINT64_MAX: never. */
static uint64_t next_action_ms(const struct isolate_lifecycle *l)
{
    switch ((enum isolate_state)l->state.current) {
    case ISOLATE_DOWN:
        return l->start_ms;
    case ISOLATE_STARTING:
        return l->began_ms + START_MS;
    case ISOLATE_DRAINING:
        return l->end_ms;
    case ISOLATE_SERVING:
    case ISOLATE_RESTARTING:
    case ISOLATE_ENDED:
    case ISOLATE_STATES:
        break;
    }
    return UINT64_MAX;
}

enum isolate_due isolate_lifecycle_due_action(const struct isolate_lifecycle *l, uint64_t now_ms)
{
    if (now_ms < next_action_ms(l))
        return ISOLATE_DUE_NOTHING;
    return l->state.current == ISOLATE_DOWN       ? ISOLATE_DUE_START
           : l->state.current == ISOLATE_STARTING ? ISOLATE_DUE_KILL_START
                                                  : ISOLATE_DUE_KILL;
}

uint64_t isolate_lifecycle_timeout_ms(const struct isolate_lifecycle *l, uint64_t now_ms)
{
    uint64_t due = next_action_ms(l);
    return due == UINT64_MAX ? due : due > now_ms ? due - now_ms : 0;
}

/* ---- Events ---- */

void isolate_lifecycle_started(struct isolate_lifecycle *l, uint64_t now_ms, bool ok)
{
    l->began_ms = now_ms;
    if (ok)
        set_state(l, ISOLATE_STARTING);
    else
        l->start_ms = now_ms + PAUSE_MAX_MS;
}

/* READY=1 may come from a process that was killed in the meantime, so the state is checked. */
bool isolate_lifecycle_ready(struct isolate_lifecycle *l)
{
    if (l->state.current == ISOLATE_STARTING)
        set_state(l, ISOLATE_SERVING);
    return l->state.current == ISOLATE_SERVING && l->pending.current != ISOLATE_PENDING_RELOAD;
}

void isolate_lifecycle_reloading(struct isolate_lifecycle *l)
{
    if (l->pending.current == ISOLATE_PENDING_RELOAD)
        set_pending(l, ISOLATE_PENDING_RELOAD_BEGUN);
}

void isolate_lifecycle_restart(struct isolate_lifecycle *l)
{
    l->start_ms = 0;
    set_state(l, ISOLATE_RESTARTING);
}

static bool enter_backoff(struct isolate_lifecycle *l, uint64_t now_ms)
{
    set_state(l, ISOLATE_DOWN);
    l->young_deaths = now_ms - l->began_ms < YOUNG_MS ? l->young_deaths + 1 : 0;
    unsigned n = l->young_deaths < 9 ? l->young_deaths : 8;
    uint64_t pause = n < 2 ? 0 : (uint64_t)PAUSE_MS << (n - 2);
    l->start_ms = now_ms + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
    return true;
}

bool isolate_lifecycle_died(struct isolate_lifecycle *l, uint64_t now_ms)
{
    if (l->state.current == ISOLATE_STARTING || l->state.current == ISOLATE_SERVING)
        return enter_backoff(l, now_ms);
    set_state(l, l->state.current == ISOLATE_RESTARTING ? ISOLATE_DOWN : ISOLATE_ENDED);
    return false;
}

int isolate_lifecycle_reload(struct isolate_lifecycle *l)
{
    if (l->state.current == ISOLATE_DRAINING || l->state.current == ISOLATE_ENDED)
        return 0;
    if (l->state.current == ISOLATE_SERVING) {
        set_pending(l, ISOLATE_PENDING_RELOAD);
        return SIGHUP;
    }
    set_pending(l, ISOLATE_PENDING_RELOAD_BEGUN); /* the next process starts with the new configuration */
    l->start_ms = 0;
    if (l->state.current != ISOLATE_STARTING)
        return 0;
    isolate_lifecycle_restart(l);
    return SIGKILL;
}

/* A process that does not serve yet is killed, because it has nothing to finish and may hang. */
int isolate_lifecycle_shut_down(struct isolate_lifecycle *l, uint64_t now_ms, int signal)
{
    enum isolate_state from = (enum isolate_state)l->state.current;
    if (from == ISOLATE_ENDED)
        return 0;
    if (from != ISOLATE_DRAINING) {
        l->end_ms = now_ms + DRAIN_MS;
        set_state(l, from == ISOLATE_DOWN ? ISOLATE_ENDED : ISOLATE_DRAINING);
    }
    if (from == ISOLATE_DOWN)
        return 0;
    if (from == ISOLATE_STARTING || from == ISOLATE_RESTARTING)
        return SIGKILL;
    return l->pending.current == ISOLATE_PENDING_NONE ? signal : SIGTERM;
}

char isolate_lifecycle_pop_reply(struct isolate_lifecycle *l)
{
    enum isolate_pending pending = (enum isolate_pending)l->pending.current;
    if (pending == ISOLATE_PENDING_NONE)
        return 0;
    set_pending(l, ISOLATE_PENDING_NONE);
    return pending == ISOLATE_PENDING_START ? ISOLATE_START : ISOLATE_RELOAD;
}
