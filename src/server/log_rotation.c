/* SPDX-License-Identifier: Apache-2.0 */
#include "server/log_rotation.h"

#include "os/fd.h"
#include "worker/control.h"

/* Replaces the descriptor of a log in the master, which itself writes only to the error log. */
static void replace_log_fd(struct mk_workers *w, const struct mk_logfile *f, int fd)
{
    struct mk_logwriter *own = &w->log->own;
    (void)!(own->file == f ? mk_logwriter_replace_fd(own, fd) : mk_logfile_replace_fd(f, fd));
}

static void send_log_fd(struct mk_workers *w, mk_str where, int fd)
{
    mk_workers_broadcast(w, &(struct mk_control_message){.kind = MK_CONTROL_LOG, .text = where, .fd = fd});
}

void mk_log_rotation_reopen(struct mk_workers *w, struct mk_config_generation *g)
{
    for (size_t i = 0; i < g->logs.n; i++) {
        const struct mk_logfile *f = &g->logs.at[i];
        bool may_move = f->kind == MK_LOGFILE_FILE || f->kind == MK_LOGFILE_SYSLOG;
        int fd = may_move ? mk_logfile_reopen(f) : -ENOENT;
        if (fd >= 0) {
            replace_log_fd(w, f, fd);
            send_log_fd(w, f->where, fd);
            mk_fd_close(&fd);
        } else if (may_move) {
            mk_log_error(&w->log->log, "cannot reopen the log %s: %s", f->where.p, mk_err_text(fd));
        }
    }
}

static const struct mk_logfile *find_logfile(const struct mk_config_generation *g, mk_str where)
{
    for (size_t i = 0; i < g->logs.n; i++)
        if (g->logs.at[i].kind == MK_LOGFILE_FILE && mk_str_eq(g->logs.at[i].where, where))
            return &g->logs.at[i];
    return NULL;
}

void mk_log_rotation_rotate_if_full(struct mk_workers *w, struct mk_config_generation *const *gs, size_t n,
                                    mk_str where)
{
    const struct mk_logfile *full = NULL;
    for (size_t i = 0; i < n && !full; i++) {
        const struct mk_logfile *f = gs[i] ? find_logfile(gs[i], where) : NULL;
        full = f && mk_logfile_is_full(f) ? f : NULL;
    }
    if (!full)
        return;
    int fd = mk_logfile_rotate(full);
    if (fd < 0) {
        mk_log_error(&w->log->log, "cannot rotate the log %s: %s", full->where.p, mk_err_text(fd));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct mk_logfile *f = gs[i] ? find_logfile(gs[i], where) : NULL;
        if (f)
            replace_log_fd(w, f, fd);
    }
    send_log_fd(w, full->where, fd);
    mk_fd_close(&fd);
}
