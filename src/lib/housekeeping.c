/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/housekeeping.h"

#include "os/fd.h"
#include "setup/tls_ticket_keys.h"

/* The new file gets the descriptor number of the old one, so all threads write to the new file afterwards. */
static mk_err rotate_log(const struct mk_logfile *log)
{
    int fd = mk_logfile_rotate(log);
    mk_err e = fd < 0 ? fd : mk_logfile_replace_fd(log, fd);
    mk_fd_close(&fd);
    return e;
}

static mk_err on_log_full(struct mk_worker *w, const struct mk_logfile *log)
{
    struct mk_server *s = MK_CONTAINER(w, struct mk_lib_worker, worker)->server;
    pthread_mutex_lock(&s->lock);
    mk_err e = mk_logfile_is_full(log) ? rotate_log(log) : 0; /* another thread may have rotated the log */
    pthread_mutex_unlock(&s->lock);
    if (e)
        mk_log_error(w->manager.log, "cannot rotate the log %s: %s", log->where.p, mk_err_text(e));
    return e;
}

static void schedule_ticket_rotation(struct mk_lib_worker *r)
{
    struct mk_loop *loop = &r->worker.loop;
    mk_loop_set_timer(loop, &r->tickets, r->server->generation->server.ticket_ms);
}

static void on_ticket_timer(struct mk_timer *t)
{
    struct mk_lib_worker *r = MK_CONTAINER(t, struct mk_lib_worker, tickets);
    mk_err e = mk_tls_ticket_keys_rotate(r->server->generation->tickets);
    if (e)
        mk_log_error(&r->log.log, "cannot create a new key for TLS session tickets: %s", mk_err_text(e));
    schedule_ticket_rotation(r);
}

void mk_housekeeping_start(struct mk_lib_worker *r)
{
    const struct mk_config_generation *g = r->server->generation;
    r->worker.on_full = on_log_full;
    mk_timer_init(&r->tickets, on_ticket_timer);
    if (r->index == 0 && g->tickets && g->server.ticket_ms)
        schedule_ticket_rotation(r);
}

void mk_housekeeping_stop(struct mk_lib_worker *r)
{
    mk_timer_stop(&r->tickets);
}
