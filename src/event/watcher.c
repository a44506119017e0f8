/* SPDX-License-Identifier: Apache-2.0 */
#include "event/watcher.h"

#include "base/mem.h"

struct mk_watcher {
    struct mk_fd_watch watch;
    struct mk_loop_task task; /* frees the watcher */
    struct mk_loop *loop;
    int fd;
    unsigned events;
    void (*on_ready)(void *ctx, unsigned which); /* NULL: freed in this iteration */
    void *ctx;
};

static uint32_t epoll_events(unsigned events)
{
    return (events & MK_READABLE ? EPOLLIN | EPOLLRDHUP : 0u) | (events & MK_WRITABLE ? EPOLLOUT : 0u) |
           (events & MK_LEVEL ? 0u : EPOLLET);
}

/* A hangup or error reports all requested events, so that the owner's next call sees the error. */
static void on_watch_event(struct mk_fd_watch *watch, uint32_t events)
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

struct mk_watcher *mk_watcher_new_on(struct mk_loop *loop, int fd, unsigned events,
                                     void (*on_ready)(void *ctx, unsigned which), void *ctx)
{
    struct mk_watcher *w = mk_mem_alloc(sizeof *w);
    if (!w)
        return NULL;
    *w = (struct mk_watcher){.watch = {.on_ready = on_watch_event},
                             .loop = loop,
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

/* An event of this iteration may still be pending, so the memory is freed at its end. */
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
