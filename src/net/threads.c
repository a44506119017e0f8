/* SPDX-License-Identifier: Apache-2.0 */
#include "net/threads.h"

#include <limits.h>

#include "base/mem.h"

enum { STACK = 1024 * 1024 }; /* libraries that resolve names or hash passwords need more than our code */

struct work {
    struct mk_job job;
    struct mk_threads *threads;
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

static void run(struct mk_job *job)
{
    struct work *w = MK_CONTAINER(job, struct work, job);
    w->work(w->ctx);
}

static void finish(struct mk_job *job)
{
    struct work *w = MK_CONTAINER(job, struct work, job), ended = *w;
    mk_mem_free(w);
    ended.threads->n_jobs--;
    ended.done(ended.ctx);
}

mk_err mk_threads_init(struct mk_threads *t, struct mk_loop *loop, unsigned n, unsigned waiting_max)
{
    *t = (struct mk_threads){.jobs_max = waiting_max < UINT_MAX - n ? n + waiting_max : UINT_MAX};
    mk_err e = mk_helper_init(&t->helper, loop);
    t->helper.stack = STACK;
    t->helper.most = n;
    return e;
}

void mk_threads_fini(struct mk_threads *t)
{
    t->ending = true;
    mk_helper_fini(&t->helper);
}

int mk_threads_run(struct mk_threads *t, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    struct work *w = t->ending || t->n_jobs >= t->jobs_max ? NULL : mk_mem_alloc(sizeof *w);
    if (!w)
        return -EAGAIN;
    *w = (struct work){
        .job = {.run = run, .done = finish}, .threads = t, .work = work, .done = done, .ctx = ctx};
    if (!mk_helper_submit(&t->helper, &w->job)) {
        mk_mem_free(w);
        return -EAGAIN;
    }
    t->n_jobs++;
    return 0;
}

struct mk_threads *mk_threads_new_in(struct mk_loop *loop, unsigned n, unsigned waiting_max)
{
    struct mk_threads *t = n > 0 && n <= MK_HELPER_THREADS_MAX ? mk_mem_alloc(sizeof *t) : NULL;
    if (t && mk_threads_init(t, loop, n, waiting_max) != 0) {
        mk_mem_free(t);
        return NULL;
    }
    return t;
}

static void drop_memory(struct mk_task *task)
{
    mk_mem_free(MK_CONTAINER(task, struct mk_threads, task));
}

/* An event of its bell may still be pending in this turn, so the memory is freed at the end of the turn. */
void mk_threads_free(struct mk_threads *t)
{
    if (!t)
        return;
    mk_threads_fini(t);
    t->task.run = drop_memory;
    mk_loop_defer(t->helper.loop, &t->task);
}
