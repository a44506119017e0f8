/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: callbacks of the server wake the handler. */
#include <errno.h>
#include <poll.h>

#include "service/memory.h"
#include "service/suspend.h"

/* ---- Time ---- */

struct sleep_wait {
    struct duda_wait wait; /* must be first */
    struct mk_timer timer;
};

static void on_sleep_timer(struct mk_timer *t)
{
    struct sleep_wait *n = MK_CONTAINER(t, struct sleep_wait, timer);
    duda_wait_wake(&n->wait);
}

static void stop_sleep_timer(struct duda_wait *w)
{
    mk_timer_stop(&((struct sleep_wait *)w)->timer);
}

int duda_sleep(struct duda_ctx *d, uint32_t ms)
{
    struct sleep_wait sleep_wait;
    mk_timer_init(&sleep_wait.timer, on_sleep_timer);
    int e = duda_wait_begin(d, &sleep_wait.wait, stop_sleep_timer);
    if (e)
        return e;
    mk_timer_set(&sleep_wait.timer, duda_worker(d), ms);
    e = duda_suspend_until_drain(&sleep_wait.wait);
    duda_wait_end(&sleep_wait.wait);
    return e;
}

/* ---- Descriptors ---- */

struct fd_wait {
    struct duda_wait wait; /* must be first */
    struct mk_timer timer;
    struct mk_watcher *watcher;
    unsigned ready_events; /* 0: timed out */
};

static void on_fd_ready(void *ctx, unsigned ready_events)
{
    struct fd_wait *l = ctx;
    l->ready_events |= ready_events;
    duda_wait_wake(&l->wait);
}

static void on_fd_timeout(struct mk_timer *t)
{
    struct fd_wait *l = MK_CONTAINER(t, struct fd_wait, timer);
    duda_wait_wake(&l->wait);
}

static void free_fd_wait(struct duda_wait *w)
{
    struct fd_wait *l = (struct fd_wait *)w;
    mk_watcher_free(l->watcher);
    mk_timer_stop(&l->timer);
}

static int start_fd_wait(struct fd_wait *l, int fd, unsigned events, uint32_t ms)
{
    struct mk_worker *w = duda_worker(l->wait.d);
    mk_timer_init(&l->timer, on_fd_timeout);
    if (ms != MK_FOREVER)
        mk_timer_set(&l->timer, w, ms);
    errno = 0;
    l->watcher = mk_watcher_new(w, fd, events, on_fd_ready, l);
    return l->watcher ? 0 : errno ? -errno : -ENOMEM;
}

/* Returns the events that a watcher of the loop would report now. */
static int poll_fd(int fd, unsigned events)
{
    struct pollfd p = {.fd = fd,
                       .events = (short)((events & MK_READABLE ? POLLIN | POLLRDHUP : 0) |
                                         (events & MK_WRITABLE ? POLLOUT : 0))};
    int n = poll(&p, 1, 0);
    if (n <= 0 || p.revents & POLLNVAL)
        return n < 0 ? -errno : n ? -EBADF : -ETIME;
    unsigned ready = (p.revents & POLLIN ? MK_READABLE : 0u) | (p.revents & POLLOUT ? MK_WRITABLE : 0u);
    if (p.revents & (POLLERR | POLLHUP))
        ready |= MK_HUNG_UP | (events & (MK_READABLE | MK_WRITABLE));
    if (p.revents & POLLRDHUP)
        ready |= MK_READABLE | MK_ENDED;
    return (int)ready;
}

int duda_wait_fd(struct duda_ctx *d, int fd, unsigned events, uint32_t ms)
{
    if (!ms)
        return d->cancel_error ? duda_suspend(d) : poll_fd(fd, events);
    struct fd_wait fd_wait = {.ready_events = 0};
    int e = duda_wait_begin(d, &fd_wait.wait, free_fd_wait);
    if (e)
        return e;
    e = start_fd_wait(&fd_wait, fd, events, ms);
    e = e ? e : duda_wait_suspend(&fd_wait.wait);
    duda_wait_end(&fd_wait.wait);
    return e ? e : fd_wait.ready_events ? (int)fd_wait.ready_events : -ETIME;
}

/* ---- Threads ---- */

/* On the heap: the thread may outlive the handler. */
struct offload_job {
    struct duda_wait wait; /* must be first */
    duda_work_fn *work;
    void (*drop)(void *job);
    void *job;
    int result; /* result of work() */
    bool is_over, is_abandoned;
};

static void run_offloaded_job(void *ctx)
{
    struct offload_job *a = ctx;
    a->result = a->work(a->job);
}

static void on_offload_done(void *ctx)
{
    struct offload_job *a = ctx;
    a->is_over = true;
    if (!a->is_abandoned) {
        duda_wait_wake(&a->wait);
        return;
    }
    a->drop(a->job);
    mk_mem_free(a);
}

/* Abandons the job to the thread, which is still working on it and frees it. */
static void abandon_offload_job(struct duda_wait *w)
{
    struct offload_job *a = (struct offload_job *)w;
    a->is_abandoned = true;
    if (a->is_over)
        mk_mem_free(a);
}

static int start_offload_job(struct duda_ctx *d, struct mk_thread_pool *threads, struct offload_job *a)
{
    int e = duda_wait_begin(d, &a->wait, abandon_offload_job);
    if (e)
        return e;
    return threads ? mk_thread_pool_submit(threads, run_offloaded_job, on_offload_done, a)
                   : mk_worker_offload(duda_worker(d), run_offloaded_job, on_offload_done, a);
}

/* Runs the work. *is_done: it has returned, and the caller owns the job; otherwise the job is dropped. */
static int run_in_thread(struct duda_ctx *d, struct mk_thread_pool *threads, duda_work_fn *work, void *job,
                         void (*drop)(void *job), bool *is_done)
{
    *is_done = false;
    /* The caller passed on ownership of the job, so it must be freed before a cancelled handler may be
     * terminated. */
    struct offload_job *a = d->cancel_error ? NULL : mk_mem_zalloc(1, sizeof *a);
    if (!a) {
        drop(job);
        return d->cancel_error ? duda_suspend(d) : -ENOMEM;
    }
    *a = (struct offload_job){.work = work, .drop = drop, .job = job};
    int e = start_offload_job(d, threads, a);
    if (e) {
        a->is_over = true;
        duda_wait_end(&a->wait);
        drop(job);
        return e;
    }
    e = duda_wait_suspend(&a->wait);
    if (e)
        return e;
    *is_done = true;
    e = a->result;
    duda_wait_end(&a->wait);
    return e;
}

int duda_offload_owned(struct duda_ctx *d, struct mk_thread_pool *threads, duda_work_fn *work, void *job,
                       void (*drop)(void *job))
{
    bool is_done;
    int e = run_in_thread(d, threads, work, job, drop, &is_done);
    if (is_done && e)
        drop(job);
    return e;
}

/* Development mode: the copy that the thread gets must contain no pointer to data of the handler. */
static void check_job(struct duda_ctx *d, const char *job, size_t size)
{
    size_t at = duda_memory_find_pointer(d, job, size);
    if (at < size)
        duda_log_handler(
            d, MK_LOG_ERROR,
            "duda_offload(): byte %zu of the job is a pointer to the stack or memory of the handler, "
            "which the thread may use after the handler has ended: copy the data into the job",
            at);
}

int duda_offload(struct duda_ctx *d, struct mk_thread_pool *threads, duda_work_fn *work, void *job,
                 size_t size)
{
    if (size && duda_memory_is_dev_mode(d->worker_ctx))
        check_job(d, job, size);
    bool is_done;
    void *copy = mk_mem_alloc(size ? size : 1);
    if (!copy)
        return -ENOMEM;
    if (size)
        memcpy(copy, job, size);
    int e = run_in_thread(d, threads, work, copy, mk_mem_free, &is_done);
    if (!is_done)
        return e;
    if (size)
        memcpy(job, copy, size);
    mk_mem_free(copy);
    return e;
}
