/* SPDX-License-Identifier: Apache-2.0 */
#include "event/offload.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/fd.h"

enum { STACK = 64 * 1024 };

static struct mk_offload_job *dequeue_job(struct mk_offload *h)
{
    h->n_idle++;
    while (!h->waiting && !h->ending)
        pthread_cond_wait(&h->wake, &h->lock);
    h->n_idle--;
    struct mk_offload_job *job = h->waiting;
    if (!job)
        return NULL;
    h->waiting = job->next;
    h->n_waiting--;
    if (!h->waiting)
        h->waiting_end = &h->waiting;
    return job;
}

static void *thread_main(void *data)
{
    struct mk_offload *h = data;
    struct mk_offload_job *job;
    uint64_t one = 1;
    pthread_mutex_lock(&h->lock);
    while ((job = dequeue_job(h))) {
        pthread_mutex_unlock(&h->lock);
        job->run(job);
        pthread_mutex_lock(&h->lock);
        job->next = h->finished;
        h->finished = job;
        (void)!write(h->wakeup_fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static struct mk_offload_job *take_finished_jobs(struct mk_offload *h)
{
    pthread_mutex_lock(&h->lock);
    struct mk_offload_job *all = h->finished;
    h->finished = NULL;
    pthread_mutex_unlock(&h->lock);
    return all;
}

static void call_done_callbacks(struct mk_offload *h)
{
    struct mk_offload_job *job = take_finished_jobs(h);
    while (job) {
        struct mk_offload_job *next = job->next;
        job->done(job);
        job = next;
    }
}

static void on_wakeup(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_offload *h = MK_CONTAINER(w, struct mk_offload, bell);
    uint64_t n;
    (void)events;
    if (h->ending) /* mk_offload_fini() has called done() for all jobs */
        return;
    (void)!read(h->wakeup_fd, &n, sizeof n);
    call_done_callbacks(h);
}

mk_err mk_offload_init(struct mk_offload *h, struct mk_loop *loop)
{
    *h = (struct mk_offload){.loop = loop,
                             .stack = STACK,
                             .most = MK_OFFLOAD_THREADS,
                             .bell = {.on_ready = on_wakeup},
                             .wakeup_fd = -1};
    h->waiting_end = &h->waiting;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    return 0;
}

void mk_offload_fini(struct mk_offload *h)
{
    pthread_mutex_lock(&h->lock);
    h->ending = true;
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
    for (unsigned i = 0; i < h->n_threads; i++)
        pthread_join(h->threads[i], NULL);
    call_done_callbacks(h);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
    mk_fd_close(&h->wakeup_fd);
}

/* Signals stay blocked in the new thread: the loop's thread handles them. */
static bool start_thread(struct mk_offload *h)
{
    sigset_t all, before;
    pthread_attr_t attr;
    size_t stack = mk_max(h->stack, (size_t)PTHREAD_STACK_MIN);
    if (pthread_attr_init(&attr) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&h->threads[h->n_threads], &attr, thread_main, h) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    h->n_threads += ok;
    return ok;
}

static bool open_wakeup_fd(struct mk_offload *h)
{
    if (h->wakeup_fd >= 0)
        return true;
    h->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wakeup_fd >= 0 && mk_loop_add(h->loop, h->wakeup_fd, &h->bell, EPOLLIN) == 0)
        return true;
    mk_fd_close(&h->wakeup_fd);
    return false;
}

bool mk_offload_submit(struct mk_offload *h, struct mk_offload_job *job)
{
    if (!open_wakeup_fd(h))
        return false;
    pthread_mutex_lock(&h->lock);
    bool short_handed = h->n_waiting >= h->n_idle && h->n_threads < h->most;
    bool ok = !short_handed || start_thread(h) || h->n_threads > 0;
    if (ok) {
        job->next = NULL;
        *h->waiting_end = job;
        h->waiting_end = &job->next;
        h->n_waiting++;
        pthread_cond_signal(&h->wake);
    }
    pthread_mutex_unlock(&h->lock);
    return ok;
}
