/* SPDX-License-Identifier: Apache-2.0 */
#include "net/helper.h"

#include <limits.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/fd.h"

enum { STACK = 64 * 1024 };

static struct mk_job *dequeue(struct mk_helper *h)
{
    h->n_idle++;
    while (!h->waiting && !h->ending)
        pthread_cond_wait(&h->wake, &h->lock);
    h->n_idle--;
    struct mk_job *job = h->waiting;
    if (!job)
        return NULL;
    h->waiting = job->next;
    h->n_waiting--;
    if (!h->waiting)
        h->waiting_end = &h->waiting;
    return job;
}

static void *work(void *data)
{
    struct mk_helper *h = data;
    struct mk_job *job;
    uint64_t one = 1;
    pthread_mutex_lock(&h->lock);
    while ((job = dequeue(h))) {
        pthread_mutex_unlock(&h->lock);
        job->run(job);
        pthread_mutex_lock(&h->lock);
        job->next = h->finished;
        h->finished = job;
        (void)!write(h->bell_fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static struct mk_job *dequeue_finished(struct mk_helper *h)
{
    pthread_mutex_lock(&h->lock);
    struct mk_job *all = h->finished;
    h->finished = NULL;
    pthread_mutex_unlock(&h->lock);
    return all;
}

static void call_done(struct mk_helper *h)
{
    struct mk_job *job = dequeue_finished(h);
    while (job) {
        struct mk_job *next = job->next;
        job->done(job);
        job = next;
    }
}

static void on_bell(struct mk_watch *w, uint32_t events)
{
    struct mk_helper *h = MK_CONTAINER(w, struct mk_helper, bell);
    uint64_t n;
    (void)events;
    if (h->ending) /* mk_helper_fini has called everything */
        return;
    (void)!read(h->bell_fd, &n, sizeof n);
    call_done(h);
}

mk_err mk_helper_init(struct mk_helper *h, struct mk_loop *loop)
{
    *h = (struct mk_helper){.loop = loop,
                            .stack = STACK,
                            .most = MK_HELPER_THREADS,
                            .bell = {.on_ready = on_bell},
                            .bell_fd = -1};
    h->waiting_end = &h->waiting;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    return 0;
}

void mk_helper_fini(struct mk_helper *h)
{
    pthread_mutex_lock(&h->lock);
    h->ending = true;
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
    for (unsigned i = 0; i < h->n_threads; i++)
        pthread_join(h->threads[i], NULL);
    call_done(h);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
    mk_fd_close(&h->bell_fd);
}

/* Signals stay blocked in it: the loop's thread handles them. */
static bool start_thread(struct mk_helper *h)
{
    sigset_t all, before;
    pthread_attr_t attr;
    size_t stack = mk_max(h->stack, (size_t)PTHREAD_STACK_MIN);
    if (pthread_attr_init(&attr) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&h->threads[h->n_threads], &attr, work, h) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    h->n_threads += ok;
    return ok;
}

static bool open_bell(struct mk_helper *h)
{
    if (h->bell_fd >= 0)
        return true;
    h->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->bell_fd >= 0 && mk_loop_add(h->loop, h->bell_fd, &h->bell, EPOLLIN) == 0)
        return true;
    mk_fd_close(&h->bell_fd);
    return false;
}

bool mk_helper_submit(struct mk_helper *h, struct mk_job *job)
{
    if (!open_bell(h))
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
