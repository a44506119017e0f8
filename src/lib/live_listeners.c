/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/live_listeners.h"

#include <unistd.h>

#include "base/mem.h"
#include "lib/worker_wakeup.h"
#include "os/fd.h"

#define TO(state) MK_STATE_TO(MK_LIVE_SLOT_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_LIVE_SLOT_NEW, "new", TO(ACCEPTING)),
    MK_STATE_ROW(MK_LIVE_SLOT_ACCEPTING, "accepting", TO(STOPPING) | TO(DONE)),
    MK_STATE_ROW(MK_LIVE_SLOT_STOPPING, "stopping", TO(DONE)),
    MK_STATE_ROW(MK_LIVE_SLOT_DONE, "done", 0),
};

const struct mk_state_machine mk_live_slot_machine = {"slot of a listener", &states, MK_LIVE_SLOT_STATES,
                                                      NULL};

static void move_slot(struct mk_live_slot *slot, enum mk_live_slot_state to)
{
    mk_state_move(&slot->state, &mk_live_slot_machine, slot, to);
}

/* ---- Creating and freeing ---- */

/* The slot i belongs to the worker i % n_workers: each socket has a worker that accepts from it, even with
 * more sockets than workers, and each worker has a socket. */
static void init_slots(struct mk_live_listener *l)
{
    for (unsigned i = 0; i < l->n_slots; i++)
        l->slots[i] = (struct mk_live_slot){.listener = l, .socket = i % l->n_fds};
}

struct mk_live_listener *mk_live_listener_new(struct mk_server *s, const struct mk_listen *listen,
                                              unsigned n_fds)
{
    struct mk_live_listener *l = mk_mem_zalloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct mk_live_listener){.server = s,
                                   .addr = listen->addr,
                                   .tls = listen->tls,
                                   .http2 = listen->http2,
                                   .owns_file = true,
                                   .hosts = listen->hosts,
                                   .n_fds = n_fds,
                                   .n_slots = n_fds > s->n_workers ? n_fds : s->n_workers};
    l->fds = mk_mem_zalloc(n_fds, sizeof *l->fds);
    l->slots = mk_mem_zalloc(l->n_slots, sizeof *l->slots);
    if (!l->fds || !l->slots) {
        l->n_fds = 0;
        mk_live_listener_free(l);
        return NULL;
    }
    for (unsigned i = 0; i < n_fds; i++)
        l->fds[i] = -1;
    init_slots(l);
    return l;
}

static void close_sockets(struct mk_live_listener *l)
{
    for (unsigned i = 0; i < l->n_fds; i++)
        mk_fd_close(&l->fds[i]);
}

void mk_live_listener_free(struct mk_live_listener *l)
{
    close_sockets(l);
    mk_mem_free(l->fds);
    mk_mem_free(l->slots);
    mk_mem_free(l);
}

static void append_listener(struct mk_server *s, struct mk_live_listener *l)
{
    struct mk_live_listener **at = &s->live;
    while (*at)
        at = &(*at)->next;
    *at = l;
}

static bool move_listener(struct mk_server *s, struct mk_listener *from)
{
    const struct mk_listen *as = mk_listener_find_listen(from, &s->generation->listens);
    struct mk_live_listener *l = as ? mk_live_listener_new(s, as, from->n_fds) : NULL;
    if (!l)
        return false;
    l->addr = from->addr;
    l->owns_file = !from->managed;
    memcpy(l->fds, from->fds, l->n_fds * sizeof *l->fds);
    mk_mem_free(from->fds);
    append_listener(s, l);
    return true;
}

mk_err mk_live_listeners_create(struct mk_server *s)
{
    unsigned n = s->listeners.n;
    bool ok = true;
    s->listeners.n = 0;
    for (unsigned i = 0; i < n; i++) {
        struct mk_listener one = s->listeners.at[i];
        if (move_listener(s, &one))
            continue;
        ok &= !mk_listener_find_listen(&one, &s->generation->listens);
        s->listeners.at[s->listeners.n++] = one;
    }
    return ok ? 0 : -ENOMEM;
}

void mk_live_listeners_free(struct mk_server *s)
{
    while (s->live) {
        struct mk_live_listener *l = s->live;
        s->live = l->next;
        mk_live_listener_free(l);
    }
}

/* ---- The list ---- */

struct mk_live_listener *mk_live_listeners_at(const struct mk_server *s, size_t i)
{
    struct mk_live_listener *l = s->live;
    while (l && (l->is_closing || i--))
        l = l->next;
    return l;
}

struct mk_live_listener *mk_live_listeners_find(const struct mk_server *s, const struct mk_sockaddr *addr)
{
    struct mk_live_listener *l = s->live;
    while (l && (l->is_closing || !mk_sockaddr_eq(&l->addr, addr)))
        l = l->next;
    return l;
}

bool mk_live_listeners_has_port(const struct mk_server *s, unsigned port)
{
    struct mk_live_listener *l = s->live;
    while (l && mk_sockaddr_port(&l->addr) != port)
        l = l->next;
    return port && l;
}

static void remove_from_list(struct mk_live_listener *l)
{
    struct mk_live_listener **at = &l->server->live;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
}

/* Increments the version, which workers compare with the version that they have applied. */
static void notify_workers(struct mk_server *s)
{
    atomic_fetch_add(&s->listeners_version, 1);
    mk_worker_wakeup_all(s);
}

mk_err mk_live_listeners_add(struct mk_server *s, struct mk_live_listener *l)
{
    mk_err e = 0;
    pthread_mutex_lock(&s->lock);
    if (s->n_draining || s->phase != MK_SERVER_RUNNING ||
        atomic_load(&s->stop_at) != MK_SERVER_STOP_NOT_REQUESTED)
        e = -ESHUTDOWN;
    else
        append_listener(s, l);
    pthread_mutex_unlock(&s->lock);
    if (!e)
        notify_workers(s);
    return e;
}

/* ---- Closing ---- */

static bool is_socket_in_use(const struct mk_live_listener *l, unsigned socket)
{
    for (unsigned i = 0; i < l->n_slots; i++)
        if (l->slots[i].socket == socket && l->slots[i].state.current == MK_LIVE_SLOT_ACCEPTING)
            return true;
    return false;
}

static bool is_memory_in_use(const struct mk_live_listener *l)
{
    for (unsigned i = 0; i < l->n_slots; i++)
        if (l->slots[i].state.current == MK_LIVE_SLOT_ACCEPTING ||
            l->slots[i].state.current == MK_LIVE_SLOT_STOPPING)
            return true;
    return false;
}

static void close_socket_if_unused(struct mk_live_listener *l, unsigned socket)
{
    if (!is_socket_in_use(l, socket))
        mk_fd_close(&l->fds[socket]);
}

static void free_listener_if_unused(struct mk_live_listener *l)
{
    if (is_memory_in_use(l))
        return;
    remove_from_list(l);
    mk_live_listener_free(l);
}

/* Releases an unused slot of a closing listener; may free the listener. */
static void release_slot(struct mk_live_slot *slot)
{
    struct mk_live_listener *l = slot->listener;
    close_socket_if_unused(l, slot->socket);
    free_listener_if_unused(l);
}

static void remove_socket_file(const struct mk_live_listener *l)
{
    if (l->owns_file && l->addr.any.sa_family == AF_UNIX && l->addr.un.sun_path[0])
        (void)unlink(l->addr.un.sun_path);
}

mk_err mk_live_listeners_close(struct mk_server *s, const struct mk_sockaddr *addr)
{
    pthread_mutex_lock(&s->lock);
    struct mk_live_listener *l = mk_live_listeners_find(s, addr);
    if (l) {
        l->is_closing = true;
        remove_socket_file(l);
        for (unsigned i = 0; i < l->n_fds; i++)
            close_socket_if_unused(l, i);
        free_listener_if_unused(l);
    }
    pthread_mutex_unlock(&s->lock);
    if (!l)
        return -ENOENT;
    notify_workers(s);
    return 0;
}

void mk_live_listeners_close_all(struct mk_server *s)
{
    for (struct mk_live_listener *l = s->live; l; l = l->next) {
        if (!l->is_closing)
            remove_socket_file(l);
        l->is_closing = true;
        close_sockets(l);
    }
}

/* ---- Workers ---- */

static void on_slot_end(struct mk_loop_task *t)
{
    struct mk_live_slot *slot = MK_CONTAINER(t, struct mk_live_slot, end);
    struct mk_server *s = slot->listener->server;
    pthread_mutex_lock(&s->lock);
    move_slot(slot, MK_LIVE_SLOT_DONE);
    if (slot->listener->is_closing)
        release_slot(slot);
    pthread_mutex_unlock(&s->lock);
}

/* Ends a slot whose acceptor has been stopped, but only after this loop iteration: events may still
 * arrive. */
static void end_slot(struct mk_lib_worker *r, struct mk_live_slot *slot)
{
    move_slot(slot, MK_LIVE_SLOT_STOPPING);
    slot->end.run = on_slot_end;
    mk_loop_defer(&r->worker.loop, &slot->end);
}

/* Returns a slot of the worker in that state whose listener is closing (is_closing) or open; NULL: none. */
static struct mk_live_slot *find_slot(const struct mk_lib_worker *r, enum mk_live_slot_state state,
                                      bool is_closing)
{
    const struct mk_server *s = r->server;
    for (struct mk_live_listener *l = s->live; l; l = l->next)
        for (unsigned i = r->index; i < l->n_slots && l->is_closing == is_closing; i += s->n_workers)
            if (l->slots[i].state.current == state)
                return &l->slots[i];
    return NULL;
}

/* Removes the acceptor without the lock, because the acceptor accepts all queued connections first, and code
 * of the program that is called then may take the lock. A connection that arrives at a socket without an
 * acceptor is lost when the socket is closed, so the socket is closed immediately after the acceptor has been
 * removed. */
static void close_slot(struct mk_lib_worker *r, struct mk_live_slot *slot)
{
    struct mk_server *s = r->server;
    pthread_mutex_unlock(&s->lock);
    mk_worker_remove_acceptor(&r->worker, &slot->acceptor);
    pthread_mutex_lock(&s->lock);
    end_slot(r, slot);
    close_socket_if_unused(slot->listener, slot->socket);
}

static mk_err open_slot(struct mk_lib_worker *r, struct mk_live_slot *slot)
{
    const struct mk_live_listener *l = slot->listener;
    const struct mk_worker_socket socket = {
        .fd = l->fds[slot->socket], .tls = l->tls, .http2 = l->http2, .hosts = l->hosts};
    mk_err e = mk_worker_add_acceptor(&r->worker, &slot->acceptor, &socket);
    if (!e)
        move_slot(slot, MK_LIVE_SLOT_ACCEPTING);
    return e;
}

mk_err mk_live_listeners_sync(struct mk_lib_worker *r)
{
    struct mk_server *s = r->server;
    struct mk_live_slot *slot;
    mk_err e = 0;
    unsigned version = atomic_load(&s->listeners_version);
    if (r->has_drained || (r->listeners_version == version && r->has_listeners))
        return 0;
    pthread_mutex_lock(&s->lock);
    while ((slot = find_slot(r, MK_LIVE_SLOT_ACCEPTING, true)))
        close_slot(r, slot);
    while (!e && (slot = find_slot(r, MK_LIVE_SLOT_NEW, false)))
        e = open_slot(r, slot);
    pthread_mutex_unlock(&s->lock);
    r->has_listeners = !e;
    r->listeners_version = version;
    return e;
}

static void end_slots(struct mk_lib_worker *r,
                      void (*end)(struct mk_lib_worker *r, struct mk_live_slot *slot))
{
    struct mk_live_slot *slot;
    pthread_mutex_lock(&r->server->lock);
    while ((slot = find_slot(r, MK_LIVE_SLOT_ACCEPTING, false)) ||
           (slot = find_slot(r, MK_LIVE_SLOT_ACCEPTING, true)))
        end(r, slot);
    pthread_mutex_unlock(&r->server->lock);
}

void mk_live_listeners_drain(struct mk_lib_worker *r)
{
    end_slots(r, end_slot);
}

static void forget_slot(struct mk_lib_worker *r, struct mk_live_slot *slot)
{
    (void)r;
    move_slot(slot, MK_LIVE_SLOT_DONE);
    if (slot->listener->is_closing)
        release_slot(slot);
}

void mk_live_listeners_leave(struct mk_lib_worker *r)
{
    end_slots(r, forget_slot);
}
