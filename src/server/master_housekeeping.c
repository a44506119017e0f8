/* SPDX-License-Identifier: Apache-2.0 */
#include "server/master_housekeeping.h"

#include "os/sd_notify.h"
#include "setup/certificates.h"

enum {
    FILES_MS = 2000,
    WORK_MS = 15000,
    EXPIRY_MS = 24 * 3600 * 1000,
    SETTLE_MS = 1000, /* files often change together, such as a certificate and its key */
};

static void set_timer(struct mk_master_housekeeping *u, struct mk_timer *t, uint32_t after_ms)
{
    mk_loop_set_timer(u->loop, t, after_ms);
}

/* Requests a reload when the files have stopped changing: a new certificate is unusable without its key. */
static void on_file_watch_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, file_timer);
    bool changes = mk_file_watch_poll(u->generation->watched), settled = u->changed && !changes;
    u->changed = changes;
    set_timer(u, &u->file_timer, changes ? SETTLE_MS : FILES_MS);
    if (settled)
        u->on_change(u);
}

static void on_ticket_key_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, ticket_timer);
    mk_err e = u->generation->tickets ? mk_tls_ticket_keys_rotate(u->generation->tickets) : 0;
    if (e)
        mk_log_error(u->log, "cannot create a new key for TLS session tickets: %s", mk_err_text(e));
    set_timer(u, &u->ticket_timer, u->ticket_ms);
}

static void on_expiry_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, expiry_timer);
    mk_certificates_warn_expiring(u->generation, u->log);
    set_timer(u, &u->expiry_timer, EXPIRY_MS);
}

static void on_extra_work_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, work_timer);
    u->work(u->log, u->ctx);
    set_timer(u, &u->work_timer, WORK_MS);
}

/* An error needs no report: the service manager restarts a server that it does not hear of. */
static void on_watchdog_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, watchdog_timer);
    mk_err ignored = mk_sd_notify("WATCHDOG=1");
    (void)ignored;
    set_timer(u, &u->watchdog_timer, u->watchdog_ms);
}

void mk_master_housekeeping_init(struct mk_master_housekeeping *u, struct mk_loop *loop, struct mk_log *log,
                                 void (*on_change)(struct mk_master_housekeeping *u))
{
    *u = (struct mk_master_housekeeping){.loop = loop, .log = log, .on_change = on_change};
    mk_timer_init(&u->file_timer, on_file_watch_timer);
    mk_timer_init(&u->ticket_timer, on_ticket_key_timer);
    mk_timer_init(&u->expiry_timer, on_expiry_timer);
    mk_timer_init(&u->work_timer, on_extra_work_timer);
    mk_timer_init(&u->watchdog_timer, on_watchdog_timer);
    u->watchdog_ms = mk_sd_watchdog_ms() / 2; /* as sd_watchdog_enabled(3) recommends */
    if (u->watchdog_ms)
        set_timer(u, &u->watchdog_timer, u->watchdog_ms);
}

void mk_master_housekeeping_add_work(struct mk_master_housekeeping *u,
                                     void (*work)(struct mk_log *log, void *ctx), void *ctx)
{
    u->work = work;
    u->ctx = ctx;
    set_timer(u, &u->work_timer, WORK_MS);
}

void mk_master_housekeeping_set_config(struct mk_master_housekeeping *u, const struct mk_config_generation *g)
{
    uint32_t ticket_ms = g->tickets ? g->server.ticket_ms : 0;
    u->generation = g;
    u->changed = false; /* the generation includes earlier changes, or the next check finds them */
    if (g->watched)
        set_timer(u, &u->file_timer, FILES_MS);
    else
        mk_timer_stop(&u->file_timer);
    if (g->tls) /* not before tomorrow: loading the configuration has just logged these warnings */
        set_timer(u, &u->expiry_timer, EXPIRY_MS);
    else
        mk_timer_stop(&u->expiry_timer);
    if (ticket_ms == u->ticket_ms) /* keeps the timer: frequent reloads must not prevent key rotation */
        return;
    u->ticket_ms = ticket_ms;
    if (ticket_ms)
        set_timer(u, &u->ticket_timer, ticket_ms);
    else
        mk_timer_stop(&u->ticket_timer);
}
