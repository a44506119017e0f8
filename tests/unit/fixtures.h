/* SPDX-License-Identifier: Apache-2.0 */
/* Fixtures that most layers share: an arena, heap memory, descriptors, a listener, and an event loop without
 * a thread, whose iterations the test runs. */
#ifndef MK_UNIT_FIXTURES_H
#define MK_UNIT_FIXTURES_H

#include <stdlib.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "event/loop.h"
#include "os/fd.h"
#include "os/sock.h"
#include "unit/harness.h"

static inline void arena_init(struct mk_arena *arena)
{
    mk_arena_init(arena, NULL);
}

static inline void arena_fini(struct mk_arena *arena)
{
    mk_arena_fini(arena);
}

HARNESS_FIXTURE(arena, struct mk_arena);

static inline void fd_init(int *fd)
{
    *fd = -1;
}

static inline void fd_fini(int *fd)
{
    mk_fd_close(fd);
}

/* A descriptor that the test opens. */
HARNESS_FIXTURE(fd, int);

/* Opens two connected sockets, which the test closes. */
static inline void socket_pair(int *a, int *b)
{
    int fds[2];
    MK_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    *a = fds[0];
    *b = fds[1];
}

/* Listens on a free port of 127.0.0.1 and stores its address. */
static inline void listener_setup(int *fd, struct mk_sockaddr *address)
{
    const struct mk_sock_options options = {.backlog = 64};
    fd_setup(fd);
    MK_ASSERT(mk_sockaddr_parse(MK_STR("127.0.0.1:0"), MK_STR(""), address) == 0);
    MK_ASSERT(mk_sock_listen(address, &options, fd) == 0);
    MK_ASSERT(mk_sockaddr_getsockname(*fd, address) == 0);
}

/* Allocates zeroed memory as a separate heap block, so that memory checkers see its bounds. */
static inline void *heap_setup(size_t size)
{
    void *p = calloc(1, size);
    MK_ASSERT(p);
    harness_defer(free, p);
    return p;
}

static inline void loop_init(struct mk_loop *loop)
{
    mk_err e = mk_loop_init(loop);
    MK_ASSERT(!e);
}

static inline void loop_fini(struct mk_loop *loop)
{
    mk_loop_run_tasks(loop);
    mk_loop_fini(loop);
}

HARNESS_FIXTURE(loop, struct mk_loop);

#endif
