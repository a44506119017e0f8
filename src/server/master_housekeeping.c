/* SPDX-License-Identifier: Apache-2.0 */
#include "server/master_housekeeping.h"

#include "os/sd_notify.h"
#include "setup/certificates.h"

enum {
    LOOK_MS = 2000,
    ALSO_MS = 15000,
    REMIND_MS = 24 * 3600 * 1000,
    SETTLE_MS = 1000, /* files often change together, such as a certificate and its key */
};

static void set_timer(struct mk_master_housekeeping *u, struct mk_timer *t, uint32_t after_ms)
{
    mk_loop_set_timer(u->loop, t, after_ms);
}

/* Requests a reload when the files have stopped changing: a new certificate is unusable without its key. */
static void on_file_watch_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, look);
    bool changes = mk_file_watch_poll(u->generation->watched), settled = u->changed && !changes;
    u->changed = changes;
    set_timer(u, &u->look, changes ? SETTLE_MS : LOOK_MS);
    if (settled)
        u->on_change(u);
}

static void on_ticket_key_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, rotate);
    mk_err e = u->generation->tickets ? mk_tls_ticket_keys_rotate(u->generation->tickets) : 0;
    if (e)
        mk_log_error(u->log, "cannot create a new key for TLS session tickets: %s", mk_err_text(e));
    set_timer(u, &u->rotate, u->ticket_ms);
}

static void on_expiry_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, remind);
    mk_certificates_warn_expiring(u->generation, u->log);
    set_timer(u, &u->remind, REMIND_MS);
}

static void on_extra_work_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, also);
    u->work(u->log, u->ctx);
    set_timer(u, &u->also, ALSO_MS);
}

/* An error needs no report: the service manager restarts a server that it does not hear of. */
static void on_watchdog_timer(struct mk_timer *t)
{
    struct mk_master_housekeeping *u = MK_CONTAINER(t, struct mk_master_housekeeping, watchdog);
    mk_err ignored = mk_sd_notify("WATCHDOG=1");
    (void)ignored;
    set_timer(u, &u->watchdog, u->watchdog_ms);
}

void mk_master_housekeeping_init(struct mk_master_housekeeping *u, struct mk_loop *loop, struct mk_log *log,
                                 void (*on_change)(struct mk_master_housekeeping *u))
{
    *u = (struct mk_master_housekeeping){.loop = loop, .log = log, .on_change = on_change};
    mk_timer_init(&u->look, on_file_watch_timer);
    mk_timer_init(&u->rotate, on_ticket_key_timer);
    mk_timer_init(&u->remind, on_expiry_timer);
    mk_timer_init(&u->also, on_extra_work_timer);
    mk_timer_init(&u->watchdog, on_watchdog_timer);
    u->watchdog_ms = mk_sd_watchdog_ms() / 2; /* as sd_watchdog_enabled(3) recommends */
    if (u->watchdog_ms)
        set_timer(u, &u->watchdog, u->watchdog_ms);
}

void mk_master_housekeeping_add_work(struct mk_master_housekeeping *u,
                                     void (*work)(struct mk_log *log, void *ctx), void *ctx)
{
    u->work = work;
    u->ctx = ctx;
    set_timer(u, &u->also, ALSO_MS);
}

void mk_master_housekeeping_set_config(struct mk_master_housekeeping *u, const struct mk_config_generation *g)
{
    uint32_t ticket_ms = g->tickets ? g->server.ticket_ms : 0;
    u->generation = g;
    u->changed = false; /* the generation includes earlier changes, or the next check finds them */
    if (g->watched)
        set_timer(u, &u->look, LOOK_MS);
    else
        mk_timer_stop(&u->look);
    if (g->tls) /* not before tomorrow: loading the configuration has just logged these warnings */
        set_timer(u, &u->remind, REMIND_MS);
    else
        mk_timer_stop(&u->remind);
    if (ticket_ms == u->ticket_ms) /* keeps the timer: frequent reloads must not prevent key rotation */
        return;
    u->ticket_ms = ticket_ms;
    if (ticket_ms)
        set_timer(u, &u->rotate, ticket_ms);
    else
        mk_timer_stop(&u->rotate);
}
