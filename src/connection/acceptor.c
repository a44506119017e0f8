/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/acceptor.h"

#include <sys/eventfd.h>

#include "connection/accept_hooks.h"
#include "connection/conn_manager.h"
#include "connection/h1.h"
#include "connection/h1_output.h"
#include "connection/http2.h"
#include "connection/tls_handshake.h"
#include "os/fd.h"
#include "os/sock.h"

enum {
    ACCEPTS_PER_ITERATION = 256, /* maximum connections accepted before existing connections are served */
    QUEUE_MAX = 4096,            /* maximum connections accepted before a listener closes: about the length of
                                  * a listen queue */
    RETRY_MS = 100,              /* delay before accepting again when system resources are exhausted */
};

static void open_reserve_fd(struct mk_acceptor *a)
{
    if (a->reserve_fd < 0)
        a->reserve_fd = eventfd(0, EFD_CLOEXEC); /* any descriptor will do; an eventfd needs no path */
}

static void resume_accepting(struct mk_acceptor *a)
{
    if (!a->paused || a->held || a->fd < 0)
        return;
    open_reserve_fd(a);
    a->paused = mk_loop_add(a->manager->loop, a->fd, &a->watch, EPOLLIN | EPOLLEXCLUSIVE) != 0;
    if (a->paused) /* the kernel is out of memory */
        mk_loop_set_timer(a->manager->loop, &a->retry, RETRY_MS);
}

static void pause_accepting(struct mk_acceptor *a)
{
    if (!a->paused)
        mk_loop_remove(a->manager->loop, a->fd);
    a->paused = true;
}

static void on_retry_timer(struct mk_timer *t)
{
    resume_accepting(MK_CONTAINER(t, struct mk_acceptor, retry));
}

void mk_acceptor_resume(struct mk_acceptor *a)
{
    if (a->paused && (a->rejects || a->manager->n_conns < a->manager->limits->connections_max))
        resume_accepting(a);
}

void mk_acceptor_hold(struct mk_acceptor *a, bool held)
{
    a->held = held;
    if (!held)
        mk_acceptor_resume(a);
    else if (a->fd >= 0)
        pause_accepting(a);
}

/* Rejects a connection because the server is full or lacks memory (503), or because the client has reached its limit
 * (429). */
static void reject_connection(struct mk_acceptor *a, int fd, unsigned status)
{
    struct mk_conn_manager *s = a->manager;
    mk_counter_add(&s->counters->dropped, 1);
    if (!a->wants_tls && !a->wants_h2 && (a->rejects || mk_accept_hooks_sends_rejection(s, status)))
        mk_sock_send_and_close(&fd, mk_h1_output_rejection(status));
    else
        mk_sock_close_with_rst(&fd);
}

static void serve_connection(struct mk_acceptor *a, int fd, const struct mk_addr *peer)
{
    struct mk_conn_manager *s = a->manager;
    bool has_door = s->n_accept_hooks;
    mk_err e = has_door ? 0 : mk_client_limits_acquire(&s->peers, peer);
    if (e) {
        reject_connection(a, fd, e == -EDQUOT ? 429 : 503);
        return;
    }
    const struct mk_conn_ops *first = a->wants_tls  ? &mk_tls_handshake_ops
                                      : a->wants_h2 ? s->http2->ops
                                                    : &mk_h1_ops;
    struct mk_conn *c = mk_conn_open(s, has_door ? &mk_accept_hooks_ops : first, fd, peer);
    if (!c) {
        if (!has_door)
            mk_client_limits_release(&s->peers, peer);
        reject_connection(a, fd, 503);
        return;
    }
    mk_conn_manager_limit_open_files(s);
    c->admission = has_door ? MK_CONN_NOT_COUNTED : MK_CONN_COUNTED;
    c->wants_tls = a->wants_tls;
    c->wants_h2 = a->wants_h2;
    if (a->hosts)
        c->hosts = a->hosts;
    /* Usually the request has arrived already, so many connections end without ever being added to epoll. */
    c->ops->advance(c);
}

/* Frees the reserve descriptor to accept one connection and reject it with 503. False: not possible. */
static bool reject_one_when_exhausted(struct mk_acceptor *a)
{
    struct mk_addr peer;
    if (a->manager->limits->overcapacity == MK_OVERCAPACITY_RESIST || a->reserve_fd < 0)
        return false;
    mk_fd_close(&a->reserve_fd);
    int fd = mk_sock_accept(a->fd, &peer);
    if (fd >= 0)
        reject_connection(a, fd, 503);
    open_reserve_fd(a);
    return fd >= 0;
}

/* Handles a lack of file descriptors or of memory for sockets. To free descriptors, closes cached files or,
 * if there are none, rejects one connection with 503. If that is not possible, or memory is lacking, stops
 * accepting for RETRY_MS: new connections wait in the kernel's queue. */
static void on_fds_exhausted(struct mk_acceptor *a, mk_err e)
{
    struct mk_conn_manager *s = a->manager;
    bool by_number = e == -EMFILE || e == -ENFILE;
    if (by_number && (mk_file_cache_close_idle_fds(&s->web->files) > 0 || reject_one_when_exhausted(a)))
        return;
    pause_accepting(a);
    mk_loop_set_timer(s->loop, &a->retry, RETRY_MS);
}

/* Accepts a connection. False: accept no more connections in this iteration. */
static bool accept_one(struct mk_acceptor *a)
{
    struct mk_conn_manager *s = a->manager;
    struct mk_addr peer;
    bool full = s->n_conns >= s->limits->connections_max;
    if (full && !a->rejects && s->limits->overcapacity == MK_OVERCAPACITY_RESIST) {
        pause_accepting(a);
        return false;
    }
    int fd = mk_sock_accept(a->fd, &peer);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
        on_fds_exhausted(a, fd);
        return false;
    }
    if (fd == -ECONNABORTED || fd == -EINTR || fd == -EPROTO)
        return true;
    if (fd < 0)
        return false;
    if (full || a->rejects)
        reject_connection(a, fd, 503);
    else
        serve_connection(a, fd, &peer);
    return true;
}

static void accept_up_to(struct mk_acceptor *a, unsigned most)
{
    while (most-- && !a->paused && accept_one(a))
        ;
}

/* On a socket that workers share, the kernel wakes the worker that has waited longest since it was added. The
 * worker that has accepted goes to the end of this queue; otherwise, the first one would get most connections. */
static void on_listener_event(struct mk_fd_watch *w, uint32_t events)
{
    struct mk_acceptor *a = MK_CONTAINER(w, struct mk_acceptor, watch);
    (void)events;
    accept_up_to(a, ACCEPTS_PER_ITERATION);
    if (a->is_shared && !a->paused) {
        pause_accepting(a);
        resume_accepting(a);
    }
}

void mk_acceptor_accept_queued(struct mk_acceptor *a)
{
    mk_acceptor_hold(a, false); /* accept even if held: closing the socket discards the queued connections */
    accept_up_to(a, QUEUE_MAX);
}

mk_err mk_acceptor_start(struct mk_acceptor *a, struct mk_conn_manager *s, int fd)
{
    *a = (struct mk_acceptor){
        .watch = {.on_ready = on_listener_event}, .manager = s, .fd = fd, .reserve_fd = -1, .paused = true};
    mk_timer_init(&a->retry, on_retry_timer);
    resume_accepting(a);
    if (!a->paused)
        return 0;
    mk_acceptor_stop(a);
    return -EIO;
}

void mk_acceptor_stop(struct mk_acceptor *a)
{
    if (a->fd >= 0)
        pause_accepting(a);
    mk_timer_stop(&a->retry);
    mk_fd_close(&a->reserve_fd);
    a->fd = -1;
}
