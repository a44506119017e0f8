/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/accept.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/sock.h"
#include "proto/door.h"
#include "proto/h1.h"
#include "proto/h1_output.h"
#include "proto/h2.h"
#include "proto/handshake.h"

enum {
    TURN_MAX = 256,   /* connections taken before the others have their turn */
    QUEUE_MAX = 4096, /* about what a queue holds: who comes while it is emptied shall not keep us */
    RETRY_MS = 100,   /* how long to wait when the system has nothing left to give */
};

static void open_reserve(struct mk_acceptor *a)
{
    if (a->reserve_fd < 0)
        a->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void resume(struct mk_acceptor *a)
{
    if (!a->paused || a->fd < 0)
        return;
    open_reserve(a);
    a->paused = mk_loop_add(a->service->loop, a->fd, &a->watch, EPOLLIN | EPOLLEXCLUSIVE) != 0;
}

static void pause_taking(struct mk_acceptor *a)
{
    if (!a->paused)
        mk_loop_remove(a->service->loop, a->fd);
    a->paused = true;
}

static void on_retry(struct mk_timer *t)
{
    resume(MK_CONTAINER(t, struct mk_acceptor, retry));
}

void mk_acceptor_wake(struct mk_acceptor *a)
{
    if (a->paused && a->service->n_conns < a->service->limits->connections_max)
        resume(a);
}

/* One that is not served, and told so with one write that may fail. */
static void tell(int fd, unsigned status)
{
    struct mk_conn told = {0};
    char unread[1024];
    mk_stream_open_plain(&told.stream, fd);
    (void)told.stream.ops->read(&told.stream, unread, sizeof unread); /* else closing would reset */
    mk_h1_output_busy(&told, status);
    told.stream.ops->shutdown(&told.stream);
    mk_fd_close(&fd);
}

/* The server is full (503), or has enough of this client (429). */
static void turn_away(struct mk_acceptor *a, int fd, unsigned status)
{
    struct mk_service *s = a->service;
    bool is_told = a->wants_tls || a->wants_h2 ? false
                   : status == 429             ? s->limits->overcapacity != MK_OVERCAPACITY_DROP
                                               : s->limits->overcapacity == MK_OVERCAPACITY_TOOBUSY;
    s->counters->dropped++;
    if (is_told)
        tell(fd, status);
    else
        mk_sock_reset(&fd);
}

static void serve(struct mk_acceptor *a, int fd, const struct mk_peer *peer)
{
    struct mk_service *s = a->service;
    mk_err e = mk_peers_enter(&s->peers, peer);
    if (e) {
        turn_away(a, fd, e == -EDQUOT ? 429 : 503);
        return;
    }
    const struct mk_conn_ops *first = a->wants_tls  ? &mk_handshake_ops
                                      : a->wants_h2 ? &mk_h2_ops
                                                    : &mk_h1_ops;
    struct mk_conn *c = mk_conn_open(s, s->n_accept_hooks ? &mk_door_ops : first, fd, peer);
    if (!c) {
        mk_peers_leave(&s->peers, peer);
        turn_away(a, fd, 503);
        return;
    }
    c->wants_tls = a->wants_tls;
    c->wants_h2 = a->wants_h2;
    /* Its request is there already, most of the time: many connections end before they would enter epoll. */
    c->ops->advance(c);
}

/* Gives up the reserve for one connection that is told. False: not even that helped. */
static bool tell_one(struct mk_acceptor *a)
{
    struct mk_peer peer;
    if (a->service->limits->overcapacity == MK_OVERCAPACITY_RESIST || a->reserve_fd < 0)
        return false;
    mk_fd_close(&a->reserve_fd);
    int fd = mk_sock_accept(a->fd, &peer);
    if (fd >= 0)
        turn_away(a, fd, 503);
    open_reserve(a);
    return fd >= 0;
}

/* No descriptors left, or no memory for sockets. Idle files may have some; else one connection is told, or
 * all wait. */
static void on_exhausted(struct mk_acceptor *a, mk_err e)
{
    struct mk_service *s = a->service;
    bool by_number = e == -EMFILE || e == -ENFILE;
    if (by_number && (mk_file_cache_shed(&s->web->files) > 0 || tell_one(a)))
        return;
    pause_taking(a);
    mk_timer_set(&s->loop->wheel, &a->retry, s->loop->now_ms, RETRY_MS);
}

/* False: enough for this turn. */
static bool take_one(struct mk_acceptor *a)
{
    struct mk_service *s = a->service;
    struct mk_peer peer;
    bool full = s->n_conns >= s->limits->connections_max;
    if (full && s->limits->overcapacity == MK_OVERCAPACITY_RESIST) {
        pause_taking(a);
        return false;
    }
    int fd = mk_sock_accept(a->fd, &peer);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
        on_exhausted(a, fd);
        return false;
    }
    if (fd == -ECONNABORTED || fd == -EINTR || fd == -EPROTO)
        return true;
    if (fd < 0)
        return false;
    if (full)
        turn_away(a, fd, 503);
    else
        serve(a, fd, &peer);
    return true;
}

static void take(struct mk_acceptor *a, unsigned most)
{
    while (most-- && !a->paused && take_one(a))
        ;
}

static void on_ready(struct mk_watch *w, uint32_t events)
{
    (void)events;
    take(MK_CONTAINER(w, struct mk_acceptor, watch), TURN_MAX);
}

void mk_acceptor_take_waiting(struct mk_acceptor *a)
{
    take(a, QUEUE_MAX);
}

mk_err mk_acceptor_start(struct mk_acceptor *a, struct mk_service *s, int fd)
{
    *a = (struct mk_acceptor){
        .watch = {.on_ready = on_ready}, .service = s, .fd = fd, .reserve_fd = -1, .paused = true};
    mk_timer_init(&a->retry, on_retry);
    resume(a);
    return a->paused ? -EIO : 0;
}

void mk_acceptor_stop(struct mk_acceptor *a)
{
    if (a->fd >= 0)
        pause_taking(a);
    mk_timer_stop(&a->retry);
    mk_fd_close(&a->reserve_fd);
    a->fd = -1;
}
