/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "os/fd.h"

struct mk_watcher {
    struct mk_fd_watch watch; /* its on_ready is NULL, which identifies the watch of a mk_watcher */
    struct mk_loop_task task; /* frees the watcher */
    struct mk_loop *loop;
    int fd;
    unsigned events;
    void (*on_ready)(void *ctx, unsigned which); /* NULL: the owner has freed the watcher */
    void *ctx;
};

struct mk_deferred {
    struct mk_loop_task task;
    struct mk_loop *loop;
    bool set;                  /* the task is in the loop's list */
    void (*on_end)(void *ctx); /* NULL: the memory is freed when the task has run */
    void *ctx;
};

static void read_clocks(struct mk_loop *loop)
{
    uint64_t now_ms = mk_clock_ms();
    if (now_ms == loop->now_ms && loop->now_unix)
        return; /* the wall clock has not advanced either */
    loop->now_ms = now_ms;
    loop->now_unix = mk_clock_unix();
}

static void on_wakeup(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_loop *loop = MK_CONTAINER(w, struct mk_loop, bell);
    uint64_t n;
    (void)events;
    (void)!read(loop->wakeup_fd, &n, sizeof n);
    if (loop->on_wakeup)
        loop->on_wakeup(loop);
}

mk_err mk_loop_init(struct mk_loop *loop)
{
    memset(loop, 0, offsetof(struct mk_loop, wheel));
    loop->bell.on_ready = on_wakeup;
    loop->wakeup_fd = loop->alarm_fd = -1;
    loop->clock_resolution_ms = mk_clock_ms_resolution();
    read_clocks(loop);
    mk_timer_wheel_init(&loop->wheel, loop->now_ms);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return mk_err_last();
    loop->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mk_err e = loop->wakeup_fd < 0 ? mk_err_last() : mk_loop_add(loop, loop->wakeup_fd, &loop->bell, EPOLLIN);
    if (e)
        mk_loop_fini(loop);
    return e;
}

void mk_loop_fini(struct mk_loop *loop)
{
    mk_fd_close(&loop->alarm_fd);
    mk_fd_close(&loop->wakeup_fd);
    mk_fd_close(&loop->epoll_fd);
}

mk_err mk_loop_add(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? mk_err_last() : 0;
}

mk_err mk_loop_modify(struct mk_loop *loop, int fd, struct mk_fd_watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &ev) < 0 ? mk_err_last() : 0;
}

void mk_loop_remove(struct mk_loop *loop, int fd)
{
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void prepend_task(struct mk_loop *loop, struct mk_loop_task **list, struct mk_loop_task *t)
{
    t->next = *list;
    *list = t;
    if (MK_UNLIKELY(loop->rests))
        mk_loop_wakeup(loop);
}

void mk_loop_defer(struct mk_loop *loop, struct mk_loop_task *t)
{
    prepend_task(loop, &loop->tasks, t);
}

void mk_loop_defer_to_end(struct mk_loop *loop, struct mk_loop_task *t)
{
    prepend_task(loop, &loop->ends, t);
}

void mk_loop_defer_last(struct mk_loop *loop, struct mk_loop_task *t)
{
    prepend_task(loop, &loop->last, t);
}

/* Runs the tasks of a list. Tasks that they defer run in the next iteration, so that a task that always
 * defers itself cannot starve the others. */
static void run_task_list(struct mk_loop_task **list)
{
    struct mk_loop_task *t = *list;
    *list = NULL;
    while (t) {
        struct mk_loop_task *next = t->next; /* running the task may defer it again or free it */
        if (next)
            __builtin_prefetch(next->next); /* with thousands of tasks, each one is a cache miss */
        t->run(t);
        t = next;
    }
}

static void run_deferred_tasks(struct mk_loop *loop)
{
    run_task_list(&loop->tasks);
    run_task_list(&loop->ends);
    run_task_list(&loop->last);
}

static bool has_tasks(const struct mk_loop *loop)
{
    return loop->tasks || loop->ends || loop->last;
}

void mk_loop_run_tasks(struct mk_loop *loop)
{
    while (has_tasks(loop))
        run_deferred_tasks(loop);
}

int mk_loop_timeout_ms(const struct mk_loop *loop)
{
    int until_timer = has_tasks(loop) ? 0 : mk_timer_wheel_wait(&loop->wheel, loop->now_ms);
    /* The clock may lag by one step: a longer wait avoids repeated early wakeups. */
    return until_timer > 0 ? until_timer + (int)loop->clock_resolution_ms : until_timer;
}

static int poll_timeout(const struct mk_loop *loop, int max_wait_ms)
{
    int patience = max_wait_ms == 0 ? 0 : mk_loop_timeout_ms(loop);
    if (patience < 0)
        return max_wait_ms;
    return max_wait_ms < 0 || patience < max_wait_ms ? patience : max_wait_ms;
}

/* The pulse changes with each iteration, so that another process can see whether the loop is stuck in one. */
void mk_loop_heartbeat(struct mk_loop *loop, bool works)
{
    if (loop->pulse)
        __atomic_store_n(loop->pulse, ((*loop->pulse + 1) & ~UINT64_C(1)) + works, __ATOMIC_RELAXED);
}

/* A hangup or error reports all requested events, so that the owner's next call sees the error. */
static void report_to_watcher(struct mk_fd_watch *watch, uint32_t events)
{
    struct mk_watcher *w = MK_CONTAINER(watch, struct mk_watcher, watch);
    unsigned which = (events & EPOLLIN ? MK_READABLE : 0u) | (events & EPOLLOUT ? MK_WRITABLE : 0u);
    if (events & (EPOLLHUP | EPOLLERR))
        which = w->events | MK_HUNG_UP;
    if (events & EPOLLRDHUP && w->events & MK_READABLE)
        which |= MK_READABLE | MK_ENDED;
    if (w->on_ready)
        w->on_ready(w->ctx, which);
}

mk_err mk_loop_run_once(struct mk_loop *loop, int max_wait_ms)
{
    struct epoll_event ready[MK_LOOP_BATCH];
    mk_loop_heartbeat(loop, false);
    int n = epoll_wait(loop->epoll_fd, ready, MK_LOOP_BATCH, poll_timeout(loop, max_wait_ms));
    mk_loop_heartbeat(loop, true);
    if (n < 0 && errno != EINTR)
        return mk_err_last();
    read_clocks(loop);
    uint64_t began_us = loop->on_busy ? mk_clock_us() : 0;
    for (int i = 0; i < n; i++) {
        struct mk_fd_watch *w = ready[i].data.ptr;
        if (w->on_ready)
            w->on_ready(w, ready[i].events);
        else
            report_to_watcher(w, ready[i].events);
    }
    mk_timer_wheel_advance(&loop->wheel, loop->now_ms);
    run_deferred_tasks(loop);
    if (loop->on_busy && began_us)
        loop->on_busy(loop, mk_clock_us() - began_us);
    return 0;
}

mk_err mk_loop_run(struct mk_loop *loop)
{
    mk_err e = 0;
    while (!loop->stopped && !e)
        e = mk_loop_run_once(loop, -1);
    mk_loop_heartbeat(loop, false);
    return e;
}

void mk_loop_stop(struct mk_loop *loop)
{
    loop->stopped = true;
}

void mk_loop_wakeup(struct mk_loop *loop)
{
    uint64_t one = 1;
    (void)!write(loop->wakeup_fd, &one, sizeof one);
}

/* ---- Watchers, for code outside the server core: see monkey/worker.h ---- */

static uint32_t epoll_events(unsigned events)
{
    return (events & MK_READABLE ? EPOLLIN | EPOLLRDHUP : 0u) | (events & MK_WRITABLE ? EPOLLOUT : 0u) |
           (events & MK_LEVEL ? 0u : EPOLLET);
}

struct mk_watcher *mk_loop_new_watcher(struct mk_loop *loop, int fd, unsigned events,
                                       void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    struct mk_watcher *w = mk_mem_alloc(sizeof *w);
    if (!w)
        return NULL;
    *w = (struct mk_watcher){.loop = loop,
                             .fd = fd,
                             .events = events & (MK_READABLE | MK_WRITABLE),
                             .on_ready = on_ready,
                             .ctx = ctx};
    if (mk_loop_add(loop, fd, &w->watch, epoll_events(events)) == 0)
        return w;
    mk_mem_free(w);
    return NULL;
}

int mk_watcher_change(struct mk_watcher *w, unsigned events)
{
    w->events = events & (MK_READABLE | MK_WRITABLE);
    return mk_loop_modify(w->loop, w->fd, &w->watch, epoll_events(events));
}

void mk_watcher_set_callback(struct mk_watcher *w, void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    w->on_ready = on_ready;
    w->ctx = ctx;
}

static void free_watcher_memory(struct mk_loop_task *t)
{
    mk_mem_free(MK_CONTAINER(t, struct mk_watcher, task));
}

/* An event may still be pending in this iteration, so the memory is freed at the end of the iteration. */
void mk_watcher_free(struct mk_watcher *w)
{
    if (!w)
        return;
    mk_loop_remove(w->loop, w->fd);
    mk_watcher_free_closed(w);
}

void mk_watcher_free_closed(struct mk_watcher *w)
{
    if (!w)
        return;
    w->on_ready = NULL;
    w->task.run = free_watcher_memory;
    mk_loop_defer(w->loop, &w->task);
}

/* ---- Deferred calls, also for code outside the server core ---- */

static void run_deferred(struct mk_loop_task *task)
{
    struct mk_deferred *t = MK_CONTAINER(task, struct mk_deferred, task);
    t->set = false;
    if (t->on_end)
        t->on_end(t->ctx);
    else
        mk_mem_free(t);
}

struct mk_deferred *mk_loop_new_deferred(struct mk_loop *loop, void (*on_end)(void *ctx), void *ctx)
{
    struct mk_deferred *t = mk_mem_alloc(sizeof *t);
    if (t)
        *t = (struct mk_deferred){.task = {.run = run_deferred}, .loop = loop, .on_end = on_end, .ctx = ctx};
    return t;
}

void mk_deferred_post(struct mk_deferred *t)
{
    if (!t->set)
        mk_loop_defer_to_end(t->loop, &t->task);
    t->set = true;
}

/* While the task is in the loop's list, keeps the memory: run_deferred() frees it. */
void mk_deferred_free(struct mk_deferred *t)
{
    if (t && t->set)
        t->on_end = NULL;
    else
        mk_mem_free(t);
}
