/* SPDX-License-Identifier: Apache-2.0 */
#include "server/pid.h"

#include "os/pidfile.h"

void mk_pid_init(struct mk_pid *p)
{
    *p = (struct mk_pid){.fd = -1};
    mk_arena_init(&p->arena, NULL);
}

void mk_pid_fini(struct mk_pid *p)
{
    mk_arena_fini(&p->arena);
}

void mk_pid_drop(struct mk_pid *p)
{
    if (p->path.p)
        mk_pidfile_release(p->path.p, &p->fd);
}

void mk_pid_take_again(struct mk_pid *p)
{
    if (p->path.p && p->fd < 0 && mk_pidfile_acquire(p->path.p, &p->fd))
        p->fd = -1;
}

const char *mk_pid_take(struct mk_pid *p, mk_str path)
{
    p->path = MK_STR_NULL;
    if (path.len == 0)
        return NULL;
    p->path = mk_arena_copy(&p->arena, path);
    mk_err e = p->path.p ? mk_pidfile_acquire(p->path.p, &p->fd) : -ENOMEM;
    return !e ? NULL : e == -EBUSY ? "a running monkey holds it" : mk_err_text(e);
}

/* Removes the old one first: both may be the same file under two names. */
void mk_pid_change(struct mk_pid *p, struct mk_log *log, mk_str path)
{
    mk_str before = p->path;
    if (mk_str_eq(before, path))
        return;
    mk_pid_drop(p);
    const char *problem = mk_pid_take(p, path);
    if (!problem)
        return;
    mk_log_error(log, "cannot lock the pid file %.*s: %s", MK_STR_ARG(path), problem);
    p->path = before;
    mk_pid_take_again(p);
}
