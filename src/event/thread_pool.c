/* SPDX-License-Identifier: Apache-2.0 */
#include "event/thread_pool.h"

#include <limits.h>

#include "base/mem.h"

enum {
    STACK = 1024 * 1024
}; /* stack size of a thread: libraries that resolve names or hash passwords need more than our code */

struct work {
    struct mk_offload_job job;
    struct mk_thread_pool *threads;
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

static void run_job(struct mk_offload_job *job)
{
    struct work *w = MK_CONTAINER(job, struct work, job);
    w->work(w->ctx);
}

static void finish_job(struct mk_offload_job *job)
{
    struct work *w = MK_CONTAINER(job, struct work, job), ended = *w;
    mk_mem_free(w);
    ended.threads->n_jobs--;
    ended.done(ended.ctx);
}

mk_err mk_thread_pool_init(struct mk_thread_pool *t, struct mk_loop *loop, unsigned n, unsigned waiting_max)
{
    *t = (struct mk_thread_pool){.jobs_max = waiting_max < UINT_MAX - n ? n + waiting_max : UINT_MAX};
    mk_err e = mk_offload_init(&t->helper, loop);
    t->helper.stack = STACK;
    t->helper.most = n;
    return e;
}

void mk_thread_pool_fini(struct mk_thread_pool *t)
{
    t->ending = true;
    mk_offload_fini(&t->helper);
}

int mk_thread_pool_submit(struct mk_thread_pool *t, void (*work)(void *ctx), void (*done)(void *ctx),
                          void *ctx)
{
    struct work *w = t->ending || t->n_jobs >= t->jobs_max ? NULL : mk_mem_alloc(sizeof *w);
    if (!w)
        return -EAGAIN;
    *w = (struct work){
        .job = {.run = run_job, .done = finish_job}, .threads = t, .work = work, .done = done, .ctx = ctx};
    if (!mk_offload_submit(&t->helper, &w->job)) {
        mk_mem_free(w);
        return -EAGAIN;
    }
    t->n_jobs++;
    return 0;
}

struct mk_thread_pool *mk_thread_pool_new_on(struct mk_loop *loop, unsigned n, unsigned waiting_max)
{
    struct mk_thread_pool *t = n > 0 && n <= MK_OFFLOAD_THREADS_MAX ? mk_mem_alloc(sizeof *t) : NULL;
    if (t && mk_thread_pool_init(t, loop, n, waiting_max) != 0) {
        mk_mem_free(t);
        return NULL;
    }
    return t;
}

static void free_pool_memory(struct mk_loop_task *task)
{
    mk_mem_free(MK_CONTAINER(task, struct mk_thread_pool, task));
}

/* A wakeup event may still be pending in this iteration, so the memory is freed at the end of the
 * iteration. */
void mk_thread_pool_free(struct mk_thread_pool *t)
{
    if (!t)
        return;
    mk_thread_pool_fini(t);
    t->task.run = free_pool_memory;
    mk_loop_defer(t->helper.loop, &t->task);
}
