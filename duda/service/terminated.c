/* SPDX-License-Identifier: Apache-2.0 */
#include "service/terminated.h"

#include "service/board.h"
#include "service/memory.h"
#include "service/table.h"
#include "service/task.h"

/* So many of a worker keep their memory, and each for so long at least: a route that would need more is closed. */
enum { KEPT_MAX = 1024, KEPT_S = 600 };

/* On top of the handler's stack there is no room: it lies in the memory of the handler. */
struct duda_terminated {
    struct duda_terminated *next;
    struct duda *d;
    struct duda_fiber *fiber;
    int64_t since;
};

/* The stack cannot be kept without a note of it. Then it is freed at once. */
static void note(struct duda *d, struct duda_fiber *fiber)
{
    struct duda_terminated *t = duda_alloc(d, sizeof *t);
    if (!t) {
        duda_fiber_free(fiber);
        return;
    }
    *t = (struct duda_terminated){.d = d, .fiber = fiber};
    d->terminated = t;
}

void duda_terminate(struct duda *d)
{
    struct duda_fiber *fiber = d->fiber;
    duda_task_log(d, MK_LOG_ERROR,
                  "%s() in %s:%d ignores cancellation and was terminated: return when a blocking call fails",
                  d->line->route->name, d->line->route->file, d->line->route->line);
    d->result = d->ended;
    d->fiber = NULL; /* a deferred function that waits gets an error */
    mk_timer_stop(&d->deadline);
    duda_task_end_waits(d);
    duda_memory_run_duties(d);
    note(d, fiber);
}

void duda_terminated_keep_stack(struct duda *d)
{
    note(d, d->fiber);
    d->fiber = NULL;
}

static void free_first(struct duda_home *home)
{
    struct duda_terminated *t = home->terminated;
    struct duda *d = t->d;
    home->terminated = t->next;
    home->n_terminated--;
    duda_fiber_free(t->fiber);
    duda_memory_free(d);
    duda_memory_give(home, d);
}

static void append(struct duda_home *home, struct duda_terminated *t, int64_t now)
{
    t->since = now;
    if (!home->terminated)
        home->last_terminated = &home->terminated;
    *home->last_terminated = t;
    home->last_terminated = &t->next;
    home->n_terminated++;
}

void duda_terminated_keep(struct duda *d)
{
    struct duda_home *home = d->home;
    int64_t now = mk_worker_now(home->worker);
    append(home, d->terminated, now);
    d->request = NULL; /* what its callbacks still say goes nowhere */
    d->response = NULL;
    d->out = (struct mk_buf){0}; /* it has been given back */
    d->streams = d->tunnels = true;
    while (home->n_terminated > KEPT_MAX && home->terminated->since + KEPT_S <= now)
        free_first(home);
    if (home->n_terminated >= KEPT_MAX && duda_board_close(d->line->place, home->rules, now))
        mk_worker_log(home->worker, MK_LOG_ERROR,
                      "%zu handlers were terminated within %d s: the route %.*s answers 503 for a while",
                      home->n_terminated, KEPT_S, MK_STR_ARG(d->line->pattern));
}

void duda_terminated_stop(struct duda_home *home)
{
    while (home->terminated)
        free_first(home);
}
