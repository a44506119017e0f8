/* SPDX-License-Identifier: Apache-2.0 */
#include "server/lifecycle.h"

enum { YOUNG_MS = 1000, PAUSE_MS = 100, PAUSE_MAX_MS = 10000, DOUBLINGS_MAX = 7 };
enum { REPLACEMENT_MS = 30000, REPLACED_DOUBLINGS_MAX = 5 };

/* ---- States ---- */

#define TO(phase) MK_STATE_TO(MK_PHASE_##phase)

static const struct mk_state_table phases = {
    MK_STATE_ROW(MK_PHASE_PREPARING_FIRST, "prepare first", TO(STARTING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_STARTING, "starting", TO(SERVING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_SERVING, "serving", TO(TRYING) | TO(ENDING)),
    /* A failed reload returns to SERVING: the old configuration stays active. */
    MK_STATE_ROW(MK_PHASE_TRYING, "trying", TO(PREPARING) | TO(SERVING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_PREPARING, "preparing", TO(RELOADING) | TO(SERVING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_RELOADING, "reloading", TO(HANDING_OVER) | TO(SERVING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_HANDING_OVER, "handing over", TO(SERVING) | TO(ENDING)),
    MK_STATE_ROW(MK_PHASE_ENDING, "ending", 0),
};

/* For each step, the phases in which the step may be due. */
static const uint16_t due_in[] = {
    [MK_STEP_WAIT] = UINT16_MAX,
    [MK_STEP_START_FIRST] = TO(STARTING),
    [MK_STEP_FAIL] = TO(STARTING),
    [MK_STEP_LOAD] = TO(TRYING),
    [MK_STEP_REJECT] = TO(TRYING) | TO(PREPARING),
    [MK_STEP_START_NEW] = TO(RELOADING),
    [MK_STEP_ABANDON] = TO(RELOADING),
};

static bool is_reloading(const struct mk_lifecycle *l)
{
    return (TO(TRYING) | TO(PREPARING) | TO(RELOADING)) >> l->phase.current & 1;
}

static const char *lifecycle_invariant_error(const void *owner)
{
    const struct mk_lifecycle *l = owner;
    if (l->slow && !is_reloading(l))
        return "a reload is slow";
    if (l->late && l->phase.current != MK_PHASE_HANDING_OVER)
        return "workers are late when they hand over";
    return l->due >= MK_LEN(due_in) || !(due_in[l->due] >> l->phase.current & 1) ? "this step may be due"
                                                                                 : NULL;
}

const struct mk_state_machine mk_lifecycle_machine = {"master", &phases, MK_PHASES,
                                                      lifecycle_invariant_error};

static void set_phase(struct mk_lifecycle *l, enum mk_lifecycle_phase to)
{
    if (to != MK_PHASE_PREPARING && to != MK_PHASE_RELOADING)
        l->slow = 0;
    l->late = false;
    mk_state_move(&l->phase, &mk_lifecycle_machine, l, to);
}

/* ---- Events ---- */

void mk_lifecycle_request_reload(struct mk_lifecycle *l)
{
    l->again = true;
}

void mk_lifecycle_trial_done(struct mk_lifecycle *l, bool ok)
{
    if (l->phase.current == MK_PHASE_TRYING)
        l->due = ok ? MK_STEP_LOAD : MK_STEP_REJECT;
}

void mk_lifecycle_config_loaded(struct mk_lifecycle *l, bool ok)
{
    if (l->phase.current != MK_PHASE_TRYING)
        return;
    if (ok)
        set_phase(l, MK_PHASE_PREPARING);
    else
        l->due = MK_STEP_REJECT;
}

void mk_lifecycle_plugins_prepared(struct mk_lifecycle *l, bool ok)
{
    if (l->phase.current == MK_PHASE_PREPARING_FIRST) {
        set_phase(l, MK_PHASE_STARTING);
        l->due = ok ? MK_STEP_START_FIRST : MK_STEP_FAIL;
    } else if (l->phase.current == MK_PHASE_PREPARING) {
        if (ok)
            set_phase(l, MK_PHASE_RELOADING);
        l->due = ok ? MK_STEP_START_NEW : MK_STEP_REJECT;
    }
}

void mk_lifecycle_workers_started(struct mk_lifecycle *l, bool ok)
{
    if (!ok)
        mk_lifecycle_worker_died_early(l);
}

void mk_lifecycle_worker_died_early(struct mk_lifecycle *l)
{
    if (l->phase.current == MK_PHASE_STARTING)
        l->due = MK_STEP_FAIL;
    else if (l->phase.current == MK_PHASE_RELOADING)
        l->due = MK_STEP_ABANDON;
}

void mk_lifecycle_mark_reload_slow(struct mk_lifecycle *l)
{
    l->slow = is_reloading(l) ? l->slow + 1 : 0;
}

void mk_lifecycle_old_workers_late(struct mk_lifecycle *l)
{
    l->late = l->phase.current == MK_PHASE_HANDING_OVER;
}

struct mk_lifecycle_shutdown mk_lifecycle_begin_shutdown(struct mk_lifecycle *l, bool at_once)
{
    const struct mk_lifecycle_shutdown ending = {
        .is_first = l->phase.current != MK_PHASE_ENDING,
        .kills_starting = l->slow || (l->phase.current == MK_PHASE_RELOADING && at_once),
        .has_limit = at_once,
    };
    l->due = MK_STEP_WAIT;
    if (ending.is_first)
        set_phase(l, MK_PHASE_ENDING);
    return ending;
}

/* ---- The next step ---- */

static enum mk_lifecycle_step begin_reload(struct mk_lifecycle *l)
{
    l->again = false;
    set_phase(l, MK_PHASE_TRYING);
    return MK_STEP_START_TRIAL;
}

/* Returns and clears the due step. A step that ends a reload also sets the phase to SERVING. */
static enum mk_lifecycle_step take_due_step(struct mk_lifecycle *l)
{
    enum mk_lifecycle_step due = l->due;
    l->due = MK_STEP_WAIT;
    if (due == MK_STEP_REJECT || due == MK_STEP_ABANDON) {
        l->n_replaced = 0;
        set_phase(l, MK_PHASE_SERVING);
    }
    return due;
}

/* Has a worker of the serving set died? Such a worker is not replaced until the reload is over. */
static bool has_lost_worker(const struct mk_lifecycle_workers *w)
{
    return w->old_there < w->old_wanted;
}

static bool may_be_replaced(const struct mk_lifecycle *l)
{
    unsigned doublings = l->n_replaced < REPLACED_DOUBLINGS_MAX ? l->n_replaced : REPLACED_DOUBLINGS_MAX;
    return l->slow >= 1u << doublings;
}

static bool should_give_up_reload(const struct mk_lifecycle *l, const struct mk_lifecycle_workers *w)
{
    return is_reloading(l) && l->slow &&
           ((l->again && may_be_replaced(l)) ||
            (l->phase.current == MK_PHASE_RELOADING && has_lost_worker(w)));
}

static enum mk_lifecycle_step enter_phase(struct mk_lifecycle *l, enum mk_lifecycle_phase phase,
                                          enum mk_lifecycle_step step)
{
    set_phase(l, phase);
    return step;
}

enum mk_lifecycle_step mk_lifecycle_next_step(struct mk_lifecycle *l, const struct mk_lifecycle_workers *w)
{
    if (l->due != MK_STEP_WAIT)
        return take_due_step(l);
    if (should_give_up_reload(l, w)) {
        l->n_replaced = l->again ? l->n_replaced + 1 : 0;
        return enter_phase(l, MK_PHASE_SERVING, MK_STEP_GIVE_UP_RELOAD);
    }
    switch ((enum mk_lifecycle_phase)l->phase.current) {
    case MK_PHASE_STARTING:
        return w->ready == w->wanted ? enter_phase(l, MK_PHASE_SERVING, MK_STEP_SERVE) : MK_STEP_WAIT;
    case MK_PHASE_SERVING:
        return l->again ? begin_reload(l) : MK_STEP_WAIT;
    case MK_PHASE_RELOADING:
        if (w->ready != w->wanted || w->there != w->wanted)
            return MK_STEP_WAIT;
        l->n_replaced = 0;
        return enter_phase(l, MK_PHASE_HANDING_OVER, MK_STEP_HAND_OVER);
    case MK_PHASE_HANDING_OVER:
        return l->late || !w->accept_still ? enter_phase(l, MK_PHASE_SERVING, MK_STEP_FINISH) : MK_STEP_WAIT;
    case MK_PHASE_ENDING:
        return w->all == 0 ? MK_STEP_STOP : MK_STEP_WAIT;
    case MK_PHASE_PREPARING_FIRST:
    case MK_PHASE_TRYING:
    case MK_PHASE_PREPARING:
    case MK_PHASES:
        break;
    }
    return MK_STEP_WAIT;
}

bool mk_lifecycle_may_upgrade(const struct mk_lifecycle *l)
{
    return l->phase.current == MK_PHASE_SERVING;
}

uint32_t mk_lifecycle_restart_pause(unsigned *young_deaths, uint64_t age_ms)
{
    *young_deaths = age_ms < YOUNG_MS ? *young_deaths + 1 : 0;
    if (*young_deaths <= 1)
        return 0;
    unsigned doublings = *young_deaths - 2 < DOUBLINGS_MAX ? *young_deaths - 2 : DOUBLINGS_MAX;
    uint32_t pause = (uint32_t)PAUSE_MS << doublings;
    return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}

uint32_t mk_lifecycle_replacement_pause(struct mk_lifecycle_replacements *r, uint64_t now_ms)
{
    uint64_t since = now_ms - r->last_ms;
    if (r->any && since < REPLACEMENT_MS)
        return REPLACEMENT_MS - (uint32_t)since;
    *r = (struct mk_lifecycle_replacements){.last_ms = now_ms, .any = true};
    return 0;
}
