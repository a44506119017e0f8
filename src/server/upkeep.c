/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upkeep.h"

#include "setup/certificates.h"

enum {
    LOOK_MS = 2000,
    ALSO_MS = 15000,
    REMIND_MS = 24 * 3600 * 1000,
    SETTLE_MS = 1000, /* files often change together, such as a certificate and its key */
};

static void set(struct mk_upkeep *u, struct mk_timer *t, uint32_t after_ms)
{
    mk_loop_set_timer(u->loop, t, after_ms);
}

/* Reloads once the files have stopped changing: a new certificate is useless before its key is there, too. */
static void on_look(struct mk_timer *t)
{
    struct mk_upkeep *u = MK_CONTAINER(t, struct mk_upkeep, look);
    bool changes = mk_watched_look(u->generation->watched), settled = u->changed && !changes;
    u->changed = changes;
    set(u, &u->look, changes ? SETTLE_MS : LOOK_MS);
    if (settled)
        u->on_change(u);
}

static void on_rotate(struct mk_timer *t)
{
    struct mk_upkeep *u = MK_CONTAINER(t, struct mk_upkeep, rotate);
    mk_err e = u->generation->tickets ? mk_tickets_rotate(u->generation->tickets) : 0;
    if (e)
        mk_log_error(u->log, "cannot create a new key for TLS session tickets: %s", mk_err_text(e));
    set(u, &u->rotate, u->ticket_ms);
}

static void on_remind(struct mk_timer *t)
{
    struct mk_upkeep *u = MK_CONTAINER(t, struct mk_upkeep, remind);
    mk_certificates_remind(u->generation, u->log);
    set(u, &u->remind, REMIND_MS);
}

static void on_also(struct mk_timer *t)
{
    struct mk_upkeep *u = MK_CONTAINER(t, struct mk_upkeep, also);
    u->work(u->log, u->ctx);
    set(u, &u->also, ALSO_MS);
}

void mk_upkeep_init(struct mk_upkeep *u, struct mk_loop *loop, struct mk_log *log,
                    void (*on_change)(struct mk_upkeep *u))
{
    *u = (struct mk_upkeep){.loop = loop, .log = log, .on_change = on_change};
    mk_timer_init(&u->look, on_look);
    mk_timer_init(&u->rotate, on_rotate);
    mk_timer_init(&u->remind, on_remind);
    mk_timer_init(&u->also, on_also);
}

void mk_upkeep_also(struct mk_upkeep *u, void (*work)(struct mk_log *log, void *ctx), void *ctx)
{
    u->work = work;
    u->ctx = ctx;
    set(u, &u->also, ALSO_MS);
}

void mk_upkeep_follow(struct mk_upkeep *u, const struct mk_generation *g)
{
    uint32_t ticket_ms = g->tickets ? g->server.ticket_ms : 0;
    u->generation = g;
    u->changed = false; /* the generation includes earlier changes, or the next look finds them */
    if (g->watched)
        set(u, &u->look, LOOK_MS);
    else
        mk_timer_stop(&u->look);
    if (g->tls) /* loading has warned already */
        set(u, &u->remind, REMIND_MS);
    else
        mk_timer_stop(&u->remind);
    if (ticket_ms == u->ticket_ms) /* keep the timer: frequent reloads must not prevent new keys */
        return;
    u->ticket_ms = ticket_ms;
    if (ticket_ms)
        set(u, &u->rotate, ticket_ms);
    else
        mk_timer_stop(&u->rotate);
}
