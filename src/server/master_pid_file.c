/* SPDX-License-Identifier: Apache-2.0 */
#include "server/master_pid_file.h"

#include "os/pidfile.h"

void mk_master_pid_file_init(struct mk_master_pid_file *p)
{
    *p = (struct mk_master_pid_file){.fd = -1};
    mk_arena_init(&p->arena, NULL);
}

void mk_master_pid_file_fini(struct mk_master_pid_file *p)
{
    mk_arena_fini(&p->arena);
}

void mk_master_pid_file_release(struct mk_master_pid_file *p)
{
    if (p->path.p)
        mk_pidfile_release(p->path.p, &p->fd);
}

void mk_master_pid_file_reacquire(struct mk_master_pid_file *p)
{
    if (p->path.p && p->fd < 0 && mk_pidfile_acquire(p->path.p, &p->fd))
        p->fd = -1;
}

const char *mk_master_pid_file_acquire(struct mk_master_pid_file *p, mk_str path)
{
    p->path = MK_STR_NULL;
    if (path.len == 0)
        return NULL;
    p->path = mk_arena_copy(&p->arena, path);
    mk_err e = p->path.p ? mk_pidfile_acquire(p->path.p, &p->fd) : -ENOMEM;
    return !e ? NULL : e == -EBUSY ? "another Monkey process holds it" : mk_err_text(e);
}

/* Removes the old file first: both paths may name the same file. */
void mk_master_pid_file_change(struct mk_master_pid_file *p, struct mk_log *log, mk_str path)
{
    mk_str before = p->path;
    if (mk_str_eq(before, path))
        return;
    mk_master_pid_file_release(p);
    const char *problem = mk_master_pid_file_acquire(p, path);
    if (!problem)
        return;
    mk_log_error(log, "cannot lock the pid file %.*s: %s", MK_STR_ARG(path), problem);
    p->path = before;
    mk_master_pid_file_reacquire(p);
}
