/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <errno.h>
#include <monkey/sse.h>

#include "snapshot.h"

enum { TICK_MS = 1000, SETTLE_MS = 1000, FRESH_MS = 500, RETRY_MS = 1000 };

/* Events are reference-counted, because slow viewers may still receive an event while others receive the next
 * one. */
struct event {
    unsigned users;
    size_t len;
    char text[];
};

struct live_viewer {
    struct live *live;
    struct mk_request *request;
    struct event *event; /* the event being sent, from offset `at`; NULL: waits for the next event */
    size_t at;
    uint64_t seen; /* number of the last event */
    struct live_viewer *next, **link;
};

/* ---- Events ---- */

static void release_event(struct event *e)
{
    if (e && --e->users == 0)
        mk_mem_free(e);
}

/* Creates an event from the data, and frees the data. */
static struct event *new_event(mk_str name, uint32_t retry_ms, struct mk_buf *data)
{
    struct event *e = NULL;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct mk_sse_event event = {.name = name, .retry_ms = retry_ms, .data = mk_buf_str(data)};
    if (!data->failed && mk_sse_write(&text, &event) == 0 && (e = mk_mem_alloc(sizeof *e + text.len))) {
        *e = (struct event){.users = 1, .len = text.len};
        memcpy(e->text, text.p, text.len);
    }
    mk_buf_free(&text);
    mk_buf_free(data);
    return e;
}

static struct event *make_snapshot_event(const struct live *l)
{
    struct mk_buf data = mk_buf_growing(TEXT_MAX);
    struct snapshot *s = metrics_snapshot_new(l->worker, l->metrics);
    if (!s)
        return NULL;
    metrics_json_print(s, false, &data);
    mk_mem_free(s);
    return new_event(MK_STR_NULL, RETRY_MS, &data);
}

/* Creates the event with the history, which a new viewer receives first. */
static struct event *make_history_event(const struct live *l)
{
    struct mk_buf data = mk_buf_growing(TEXT_MAX);
    struct sample *samples = mk_mem_alloc(SAMPLES * sizeof *samples);
    if (!samples)
        return NULL;
    metrics_json_print_history(l->metrics->history, mk_worker_now_ms(l->worker), samples, &data);
    mk_mem_free(samples);
    return new_event(MK_STR("history"), 0, &data);
}

/* Replaces the current event. Returns false if out of memory; the old event then stays. */
static bool replace_latest_event(struct live *l)
{
    metrics_process_reporter_run(&l->reporter, l->worker);
    struct event *e = make_snapshot_event(l);
    if (!e)
        return false;
    release_event(l->latest);
    l->latest = e;
    l->n_events++;
    l->latest_ms = mk_worker_now_ms(l->worker);
    return true;
}

static void on_tick_timer(struct mk_timer *t)
{
    struct live *l = MK_CONTAINER(t, struct live, tick);
    if (!l->viewers)
        return;
    (void)replace_latest_event(l);
    for (struct live_viewer *w = l->viewers; w; w = w->next)
        mk_request_resume(w->request);
    mk_timer_set(&l->tick, l->worker, TICK_MS);
}

/* ---- Viewers ---- */

static bool start_latest_event(struct live_viewer *w)
{
    struct event *next = w->live->latest;
    if (w->live->n_events == w->seen)
        return false;
    next->users++;
    w->event = next;
    w->seen = w->live->n_events;
    w->at = 0;
    return true;
}

static ssize_t read_events(void *ctx, char *buf, size_t cap)
{
    struct live_viewer *w = ctx;
    if (!w->event && mk_worker_is_draining(w->live->worker))
        return 0; /* the browser reconnects to a worker that is not draining */
    if (!w->event && !start_latest_event(w))
        return -EAGAIN;
    size_t left = w->event->len - w->at, n = left < cap ? left : cap;
    memcpy(buf, w->event->text + w->at, n);
    w->at += n;
    if (w->at == w->event->len) {
        release_event(w->event);
        w->event = NULL;
    }
    return (ssize_t)n;
}

static void close_viewer(void *ctx)
{
    struct live_viewer *w = ctx;
    release_event(w->event);
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    if (--w->live->n_viewers == 0)
        mk_timer_stop(&w->live->tick);
    mk_mem_free(w);
}

static const struct mk_body_source_ops events = {.read = read_events, .close = close_viewer};

static struct live_viewer *add_viewer(struct live *l, struct mk_request *request)
{
    bool is_fresh = l->latest && mk_worker_now_ms(l->worker) - l->latest_ms < FRESH_MS;
    if (!is_fresh && !replace_latest_event(l))
        return NULL;
    struct event *history = make_history_event(l);
    struct live_viewer *w = history ? mk_mem_alloc(sizeof *w) : NULL;
    if (!w) {
        release_event(history);
        return NULL;
    }
    *w = (struct live_viewer){
        .live = l, .request = request, .event = history, .next = l->viewers, .link = &l->viewers};
    if (w->next)
        w->next->link = &w->next;
    l->viewers = w;
    if (l->n_viewers++ == 0)
        mk_timer_set(&l->tick, l->worker, TICK_MS);
    return w;
}

int metrics_live_add_viewer(struct live *l, struct mk_request *request, struct mk_response *response,
                            uint32_t max)
{
    if (l->n_viewers >= max)
        return -EBUSY;
    struct live_viewer *w = add_viewer(l, request);
    return w ? mk_response_set_body_source(response, &events, w, MK_LENGTH_UNKNOWN) : -ENOMEM;
}

/* ---- The worker ---- */

static void on_settle_timer(struct mk_timer *t)
{
    struct live *l = MK_CONTAINER(t, struct live, settle);
    metrics_process_reporter_run(&l->reporter, l->worker);
    l->is_settling = l->was_busy;
    l->was_busy = false;
    if (l->is_settling)
        mk_timer_set(&l->settle, l->worker, SETTLE_MS);
}

void metrics_live_schedule_measure(struct live *l)
{
    l->was_busy = true;
    if (l->is_settling)
        return;
    l->is_settling = true;
    l->was_busy = false;
    mk_timer_set(&l->settle, l->worker, SETTLE_MS);
}

struct live *metrics_live_new(struct mk_worker *w, const struct metrics *metrics)
{
    struct live *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->worker = w;
    l->metrics = metrics;
    mk_timer_init(&l->tick, on_tick_timer);
    mk_timer_init(&l->settle, on_settle_timer);
    metrics_process_reporter_open(&l->reporter, metrics->processes);
    l->sampler = mk_worker_index(w) == 0 ? metrics_sampler_new(w, metrics, &l->reporter) : NULL;
    l->counters = metrics_counters_new(w, &metrics->counts);
    if (!l->counters || (mk_worker_index(w) == 0 && !l->sampler)) {
        metrics_live_free(l);
        return NULL;
    }
    metrics_process_reporter_run(&l->reporter, w);
    return l;
}

void metrics_live_free(struct live *l)
{
    if (!l)
        return;
    mk_timer_stop(&l->tick);
    mk_timer_stop(&l->settle);
    metrics_sampler_free(l->sampler);
    metrics_counters_free(l->counters);
    metrics_process_reporter_close(&l->reporter);
    release_event(l->latest);
    mk_mem_free(l);
}
