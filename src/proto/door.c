/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/door.h"

#include <monkey/connection.h>

#include "proto/h1.h"
#include "proto/h2.h"
#include "proto/handshake.h"

MK_COLD static void refuse(struct mk_conn *c)
{
    c->service->counters->dropped++;
    mk_conn_reset(c, MK_ENDING_REFUSED);
}

/* True: more input came. */
static bool hear_more(struct mk_conn *c)
{
    if (mk_conn_input(c).len == MK_WINDOW) {
        refuse(c);
        return false;
    }
    ssize_t n = mk_conn_fill(c);
    if (n == -EAGAIN)
        mk_conn_set_clock(c, MK_CLOCK_HEAD);
    else if (n <= 0)
        mk_conn_close(c, MK_ENDING_GONE);
    return n > 0;
}

/* True: it goes on to the next hook. */
static bool ask(struct mk_conn *c, const struct mk_accept_hook *hook)
{
    enum mk_verdict verdict;
    while ((verdict = hook->on_accept(c, hook->data)) == MK_WAIT)
        if (!hear_more(c))
            return false;
    if (verdict == MK_NEXT)
        return true;
    if (verdict != MK_REFUSE)
        mk_log_error(c->service->log,
                     "the plugin %s answered %d to on_accept: expected MK_NEXT, MK_WAIT or MK_REFUSE; the "
                     "connection was refused",
                     hook->name, (int)verdict);
    refuse(c);
    return false;
}

/* While one waits the clock runs: it is asked again when there is more for it to see, and only then. */
static void advance(struct mk_conn *c)
{
    const struct mk_service *s = c->service;
    mk_conn_enter(c);
    bool go = c->clock == MK_CLOCK_NONE || hear_more(c);
    while (go && c->hooks_passed < s->n_accept_hooks) {
        go = ask(c, &s->accept_hooks[c->hooks_passed]);
        c->hooks_passed += go;
    }
    if (!go) {
        mk_conn_leave(c);
        return;
    }
    if (c->wants_tls) {
        mk_handshake_serve(c);
        return;
    }
    if (c->wants_h2) {
        mk_h2_serve(c);
        return;
    }
    c->ops = &mk_h1_ops;
    mk_h1_serve(c);
}

static void on_clock(struct mk_conn *c, enum mk_clock clock)
{
    (void)clock;
    mk_conn_close(c, MK_ENDING_TIMEOUT);
}

static void on_close(struct mk_conn *c, enum mk_ending ending)
{
    (void)c;
    (void)ending;
}

const struct mk_conn_ops mk_door_ops = {.advance = advance, .on_clock = on_clock, .on_close = on_close};

/* ---- What hooks may ask ---- */

const struct mk_peer *mk_conn_peer(const struct mk_conn *c)
{
    return &c->peer;
}

int mk_conn_set_peer(struct mk_conn *c, const struct mk_peer *peer)
{
    mk_err e = mk_peers_move(&c->service->peers, &c->peer, peer);
    if (!e)
        c->peer = *peer;
    return e;
}

mk_str mk_conn_peek(struct mk_conn *c)
{
    return mk_conn_input(c);
}

void mk_conn_take(struct mk_conn *c, size_t n)
{
    mk_conn_use_input(c, mk_min(n, mk_conn_input(c).len));
}

struct mk_worker *mk_conn_worker(const struct mk_conn *c)
{
    return c->service->owner;
}
