/* SPDX-License-Identifier: Apache-2.0 */
#include "service/run.h"

#include <errno.h>
#include <monkey/clock.h>

#include "service/hold.h"
#include "service/home.h"
#include "service/memory.h"
#include "service/result.h"
#include "service/streams.h"
#include "service/table.h"
#include "service/task.h"
#include "service/terminated.h"
#include "trace/limit.h"

enum {
    STACK = 64 << 10,
    SPARE_MAX = 16 << 10,
};

/* ---- Stacks ---- */

_Static_assert(DUDA_STACKS_SIZE_MAX == DUDA_STACK_MAX, "what a service may ask for is what it gets");

static struct duda_stacks *stacks_for(struct duda_home *home, size_t size)
{
    size_t i = 0;
    while (i + 1 < MK_LEN(home->stacks) && ((size_t)DUDA_STACKS_SIZE_MIN << i) < size)
        i++;
    if (!home->stacks[i])
        home->stacks[i] = duda_stacks_new((size_t)DUDA_STACKS_SIZE_MIN << i);
    return home->stacks[i];
}

static int require(struct duda *d, const struct duda_route *r)
{
    bool allows = r->allows(d);
    return d->ended ? d->ended : allows ? DUDA_NEXT : (int)r->status;
}

/* DUDA_NEXT: all of them let the handler run. */
static int run_before(struct duda *d)
{
    int result = DUDA_NEXT;
    for (size_t i = 0; i < d->line->n_before && result == DUDA_NEXT && !d->session_error; i++) {
        d->answers = d->line->before[i];
        result = d->answers->kind == DUDA_IS_REQUIRE ? require(d, d->answers) : d->answers->fn(d);
    }
    return d->session_error ? d->session_error : result;
}

static int run_steps(struct duda *d)
{
    const struct duda_route *route = d->line->route;
    int result = route->deadline_ms ? duda_deadline(d, route->deadline_ms) : 0;
    if (result)
        return result;
    if (d->line->n_before && (result = run_before(d)) != DUDA_NEXT)
        return result;
    d->answers = route;
    return route->fn(d);
}

static void run_handler(void *arg)
{
    struct duda *d = arg;
    d->answers = d->line->route;
    d->result = run_steps(d);
    for (const struct duda_step *s = d->line->after; s; s = s->outer)
        (void)s->fn(d);
    duda_memory_run_duties(d);
}

/* ---- Its end ---- */

static void forget(struct duda *d)
{
    if (d->fiber)
        duda_fiber_free(d->fiber);
    d->fiber = NULL;
    mk_timer_stop(&d->deadline);
}

static bool run_once(struct duda *d)
{
    struct duda_home *home = d->home;
    struct duda *outer = home->runs; /* what that does has ended this request */
    d->runs = true;
    home->runs = d;
    duda_board_enter(home->post, home->board, d->line->place);
    if (!outer)
        duda_hold_enter(home->hold);
    bool returned = duda_fiber_resume(d->fiber);
    if (!outer && duda_hold_leave(home->hold))
        duda_home_report(home);
    duda_board_enter(home->post, home->board, outer ? outer->line->place : NULL);
    home->runs = outer;
    d->runs = false;
    return returned;
}

static void go_on(struct duda *d)
{
    d->woken = false;
    d->waits_for = DUDA_FOR_WAKE;
    bool returned = run_once(d);
    if (returned) {
        if (d->waits) {
            duda_task_forget_waits(d);
            duda_terminated_keep_stack(d);
        }
        forget(d);
        if (d->result || d->session_error || d->answers != d->line->route) /* else there is nothing to say */
            duda_result_settle(d);
    } else if (d->refused >= DUDA_REFUSALS_MAX) {
        duda_terminate(d);
    }
}

static bool take_from(struct duda **list, struct duda *d)
{
    while (*list && *list != d)
        list = &(*list)->next_woken;
    bool is_there = *list != NULL;
    if (is_there)
        *list = d->next_woken;
    return is_there;
}

DUDA_COLD static void leave_queue(struct duda *d)
{
    (void)(take_from(&d->home->woken, d) || take_from(&d->home->due, d));
    d->is_queued = false;
}

/* The next handler says it there. */
static void give_back_room(struct duda *d)
{
    struct mk_buf *spare = &d->home->spare;
    if (spare->p || d->out.cap > SPARE_MAX) {
        mk_buf_free(&d->out);
        return;
    }
    spare->p = d->out.p;
    spare->cap = d->out.cap;
    spare->max = d->out.max; /* it is freed as a growing one */
}

static uint64_t *route_cells(struct duda_home *home, uint32_t series)
{
    struct duda_route_cells *entry = &home->route_cells[series % DUDA_ROUTE_CELLS];
    if (entry->series != series) {
        entry->cells = mk_worker_cells(home->worker, series);
        entry->series = entry->cells ? series : 0;
    }
    return entry->cells;
}

static void count(const struct duda *d)
{
    bool cancelled = d->ended == -ECANCELED,
         failed = d->request ? mk_response_status(d->response) >= 500 : d->result < 0;
    if (d->line->series && d->began_us)
        mk_route_count(route_cells(d->home, d->line->series), mk_clock_us() - d->began_us,
                       failed && !cancelled, cancelled);
}

/* Nothing is left to be done for it. Behind it there may be a tunnel, which lives on. */
static void let_go(struct duda *d)
{
    struct duda_home *home = d->home;
    void (*on_over)(void *ctx, int result) = d->on_over;
    void *ctx = d->over_ctx;
    int result = d->result;
    if (d->is_queued)
        leave_queue(d);
    if (d->events_link)
        duda_streams_leave(d);
    count(d);
    if (d->reason) {
        mk_mem_free(d->reason);
        d->reason = NULL;
    }
    give_back_room(d);
    if (d->tie) {
        mk_request_set_data(d->request, NULL);
        d->tie->d = NULL;
    }
    if (d->terminated) {
        duda_terminated_keep(d);
    } else {
        duda_memory_free(d);
        duda_memory_give(home, d);
    }
    if (on_over)
        on_over(ctx, result);
}

void duda_run_cancel(struct duda *d)
{
    if (d->fiber)
        (void)duda_task_cancel(d, -ECANCELED);
    while (d->fiber)
        go_on(d);
    let_go(d);
}

/* The request is over, its memory is still there: the handler comes to its end now. */
void duda_run_end(void *data)
{
    const struct duda_tie *tie = data;
    if (tie->d)
        duda_run_cancel(tie->d);
}

/* ---- Handlers that no request resumes ---- */

static bool may_go_on(const struct duda *d)
{
    return d->woken || d->waits_for == DUDA_FOR_INPUT || (d->waits_for == DUDA_FOR_ROOM && !d->out.len);
}

static void go_on_now(struct duda *d)
{
    if (!d->fiber || d->runs || !may_go_on(d))
        return;
    go_on(d);
    if (!d->fiber && d->tunnels) /* else the server still asks for what it has said */
        let_go(d);
}

/* What is woken meanwhile comes at the end of the next turn. */
static void on_turn_end(void *ctx)
{
    struct duda_home *home = ctx;
    home->due = home->woken;
    home->woken = NULL;
    while (home->due) {
        struct duda *d = home->due;
        home->due = d->next_woken;
        d->is_queued = false;
        go_on_now(d);
    }
}

int duda_run_start(struct duda_home *home)
{
    home->go_on = go_on_now;
    home->turn = mk_turn_end_new(home->worker, on_turn_end, home);
    return home->turn ? 0 : -ENOMEM;
}

void duda_run_stop(struct duda_home *home)
{
    mk_turn_end_free(home->turn);
}

int duda_run_begin(struct duda *d)
{
    struct duda_stacks *stacks = stacks_for(d->home, d->line->route->stack ? d->line->route->stack : STACK);
    d->fiber = stacks ? duda_fiber_new(stacks, run_handler, d) : NULL;
    if (!d->fiber)
        return -ENOMEM;
    d->woken = true;
    d->began_us = mk_clock_us();
    return 0;
}

/* ---- What the client gets ---- */

static enum mk_verdict refuse(struct duda *d, unsigned status)
{
    if (d->result > 0) /* failures are in the log */
        duda_result_explain(d);
    if (status == 401 && d->result < 0)
        duda_result_challenge(d);
    (void)mk_response_set_status(d->response, status);
    return MK_REFUSE;
}

/* Once a second at most: clients must not fill the log. */
static void tell_memory(struct duda *d)
{
    const struct duda_route *route = d->line->route;
    char limit[64];
    int64_t now = mk_request_time(d->request);
    if (d->home->memory_told == now)
        return;
    d->home->memory_told = now;
    duda_limit_print(limit, sizeof limit);
    duda_log(d, MK_LOG_ERROR, "%s() in %s:%d: memory is out%s%s", route->name, route->file, route->line,
             *limit ? ": " : "", limit);
}

static void complete_head(struct duda *d)
{
    if (!d->typed)
        (void)mk_response_add_static(d->response, MK_STR("Content-Type"),
                                     MK_STR("text/plain; charset=utf-8"));
    d->typed = true;
}

static enum mk_verdict finish(struct duda *d)
{
    int result = d->result;
    if (d->tunnels) {
        let_go(d);
        return MK_DONE;
    }
    if (result < 0 && d->is_refused)
        return MK_REFUSE;
    if (result == -ENOMEM)
        tell_memory(d);
    if (result < 0)
        return refuse(d, duda_result_status(result));
    if (result >= 400 && result != DUDA_ANSWERED)
        return refuse(d, (unsigned)result);
    if (result >= 200 && result != DUDA_ANSWERED)
        (void)mk_response_set_status(d->response, (unsigned)result);
    if (!d->said) {
        if (result == 0 && !d->has_status && !d->has_content)
            (void)mk_response_set_status(d->response, 204);
        return MK_DONE;
    }
    complete_head(d);
    /* Not copied: it is given back when the request is over. */
    return mk_response_set_static(d->response, mk_buf_str(&d->out)) ? refuse(d, 503) : MK_DONE;
}

/* ---- Content that is made while it is sent ---- */

static size_t take_out(struct duda *d, char *room, size_t cap)
{
    size_t left = d->out.len - d->out_at, n = left < cap ? left : cap;
    memcpy(room, d->out.p + d->out_at, n);
    d->out_at += n;
    if (n == left) {
        mk_buf_clear(&d->out);
        d->out_at = 0;
    }
    return n;
}

/* One that waits for something other than the client learns that the client has left. */
static void follow_client(const struct duda *d)
{
    if (d->waits_for == DUDA_FOR_WAKE)
        mk_request_follow_client(d->request);
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct duda *d = ctx;
    for (bool tried = false;; tried = true) {
        if (d->out.len)
            return (ssize_t)take_out(d, room, cap);
        if (!d->fiber)
            return d->is_drained                                    ? 0
                   : d->result < 0                                  ? d->result
                   : d->result >= 400 && d->result != DUDA_ANSWERED ? -EPIPE
                                                                    : 0;
        follow_client(d);
        if (!may_go_on(d) || (tried && d->waits_for == DUDA_FOR_INPUT && !d->woken))
            return -EAGAIN; /* input is looked for once a call: more of it leads to the next one */
        go_on(d);
    }
}

static const struct mk_source_ops source = {.pull = pull};

static enum mk_verdict begin_response(struct duda *d)
{
    complete_head(d);
    return mk_response_set_source(d->response, &source, d, MK_LENGTH_UNKNOWN) ? MK_REFUSE : MK_DONE;
}

enum mk_verdict duda_run(struct duda *d)
{
    if (may_go_on(d))
        go_on(d);
    if (!d->fiber)
        return finish(d);
    if (d->tunnels)
        return MK_DONE;
    if (d->streams)
        return begin_response(d);
    follow_client(d);
    return MK_WAIT;
}
