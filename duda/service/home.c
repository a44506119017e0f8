/* SPDX-License-Identifier: Apache-2.0 */
#include "service/home.h"

#include <errno.h>

#include "service/crash.h"
#include "service/hold.h"
#include "service/locks.h"
#include "service/memory.h"
#include "service/rooms.h"
#include "service/session_store.h"
#include "service/terminated.h"

enum { LOOK_MS = 1000 };

static const struct mk_plugin *self;

void duda_home_set(const struct mk_plugin *plugin)
{
    if (!self)
        self = plugin;
}

const struct mk_plugin *duda_home_plugin(void)
{
    return self;
}

struct duda_home *duda_home(struct mk_worker *worker)
{
    return mk_worker_data(worker, self);
}

/* The report has lines, each of which is a line of the log. */
static void log_report(struct mk_worker *worker, mk_str report)
{
    while (report.p) {
        mk_str line = mk_str_cut(&report, '\n');
        mk_worker_log(worker, MK_LOG_ERROR, "%.*s", MK_STR_ARG(line));
    }
}

static void report(struct duda_home *home, struct duda_post *post)
{
    uint32_t len = atomic_exchange(&post->len, 0);
    if (!len || len > sizeof post->report)
        return;
    mk_str text = mk_str_of(post->report, len);
    log_report(home->worker, text);
    duda_lines_tell(home, text);
}

void duda_home_report(struct duda_home *home)
{
    if (home->post)
        report(home, home->post);
}

/* What a worker of this number has left, which may have died in a handler. */
static void inherit(struct duda_home *home, struct duda_post *post)
{
    bool closes;
    report(home, post);
    struct duda_place *p =
        duda_board_inherit(home->board, post, home->rules, mk_worker_now(home->worker), &closes);
    uint64_t *cells = p ? mk_worker_cells(home->worker, atomic_load(&p->counted)) : NULL;
    if (cells)
        mk_stat_add(&cells[MK_ROUTE_CRASHES], 1);
    if (p)
        mk_worker_log(home->worker, MK_LOG_ERROR, "the handler of %s ended its worker%s", p->name,
                      closes ? ", and not for the first time: the route answers 503 for a while" : "");
}

/* Nobody takes the place of a worker that drains: if it crashes, this one says so. */
static void look_after(struct mk_timer *t)
{
    struct duda_home *home = MK_CONTAINER(t, struct duda_home, look);
    unsigned index = mk_worker_index(home->worker);
    for (struct duda_post *post; (post = duda_board_find_dead(home->board, index)); duda_board_leave(post))
        inherit(home, post);
    if (duda_board_has_others(home->board, index))
        mk_timer_set(&home->look, home->worker, LOOK_MS);
}

int duda_home_start(struct mk_worker *worker, const struct duda_settings *settings)
{
    struct duda_home *home = mk_mem_zalloc(1, sizeof *home);
    if (!home)
        return -ENOMEM;
    home->worker = worker;
    mk_timer_init(&home->look, look_after);
    home->sources = &settings->sources;
    home->rules = &settings->rules;
    home->visits = settings->visits;
    home->scopes = settings->scopes;
    home->n_scopes = settings->n_services;
    home->board = settings->board;
    home->said = mk_worker_cells(worker, settings->said);
    look_after(&home->look);
    home->post = duda_board_post(settings->board, mk_worker_index(worker));
    duda_crash_start(home);
    home->hold = duda_hold_start(home);
    mk_worker_set_data(worker, self, home);
    return 0;
}

void duda_home_stop(struct mk_worker *worker)
{
    struct duda_home *home = duda_home(worker);
    if (!home)
        return;
    duda_hold_stop(home->hold);
    duda_crash_stop();
    duda_lines_stop(home);
    duda_rooms_free(home->rooms);
    duda_locks_free(home->locks);
    mk_timer_stop(&home->look);
    mk_buf_free(&home->spare);
    duda_terminated_stop(home);
    for (size_t i = 0; i < MK_LEN(home->stacks); i++)
        duda_stacks_free(home->stacks[i]);
    duda_memory_stop(home);
    duda_session_stores_free(home);
    duda_board_leave(home->post);
    mk_mem_free(home);
    mk_worker_set_data(worker, self, NULL);
}
