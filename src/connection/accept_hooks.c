/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/accept_hooks.h"

#include <monkey/connection.h>

#include "connection/h1.h"
#include "connection/h1_output.h"
#include "connection/http2.h"
#include "connection/tls_handshake.h"

/* At most 1/AWAITING_FRACTION of connections_max may wait in accept hooks. */
enum { AWAITING_FRACTION = 4 };

MK_COLD static void reject_connection(struct mk_conn *c)
{
    mk_counter_add(&c->manager->counters->dropped, 1);
    mk_conn_reset(c, MK_OUTCOME_REJECTED);
}

bool mk_accept_hooks_sends_rejection(const struct mk_conn_manager *s, unsigned status)
{
    return status == 429 ? s->limits->overcapacity != MK_OVERCAPACITY_DROP
                         : s->limits->overcapacity == MK_OVERCAPACITY_TOOBUSY;
}

MK_COLD static void reject_with_status(struct mk_conn *c, unsigned status)
{
    bool sends_status = !c->wants_tls && !c->wants_h2 && mk_accept_hooks_sends_rejection(c->manager, status);
    if (!sends_status) {
        reject_connection(c);
        return;
    }
    mk_counter_add(&c->manager->counters->dropped, 1);
    if (mk_conn_input(c).len < MK_INPUT_BUFFER_SIZE)
        (void)mk_conn_fill_input(c); /* closing with unread input would send a reset, and the client could
                                      * lose the response */
    (void)c->stream.ops->write(&c->stream, mk_h1_output_rejection(status), false);
    c->stream.ops->shutdown(&c->stream);
    mk_conn_close(c, MK_OUTCOME_REJECTED);
}

/* Until accept hooks have found the client's address, for example in a PROXY header, the connection counts
 * toward no client's limit: otherwise idle connections of a proxy would use up the limit of the proxy's
 * address. The number of such connections has its own limit. */
static void wait_for_client_addr(struct mk_conn *c)
{
    struct mk_conn_manager *s = c->manager;
    if (c->admission == MK_CONN_NOT_COUNTED) {
        if (s->n_awaiting_hooks >= mk_max(s->limits->connections_max / AWAITING_FRACTION, 1)) {
            reject_connection(c);
            return;
        }
        c->admission = MK_CONN_AWAITS_HOOK;
        s->n_awaiting_hooks++;
    }
    mk_conn_set_timeout(c, MK_TIMEOUT_ACCEPT_HOOK);
}

/* Reads more input. False: none has arrived yet, or the connection is closed. */
static bool read_more_input(struct mk_conn *c)
{
    if (mk_conn_input(c).len == MK_INPUT_BUFFER_SIZE) {
        reject_connection(c);
        return false;
    }
    ssize_t n = mk_conn_fill_input(c);
    if (n == -EAGAIN)
        wait_for_client_addr(c);
    else if (n <= 0)
        mk_conn_close(c, MK_OUTCOME_CLIENT_ABORTED);
    return n > 0;
}

/* Runs a hook. True: continue with the next hook. */
static bool run_accept_hook(struct mk_conn *c, const struct mk_accept_hook *hook)
{
    enum mk_verdict verdict;
    while ((verdict = hook->on_accept(c, hook->data)) == MK_WAIT)
        if (!read_more_input(c))
            return false;
    if (verdict == MK_NEXT)
        return true;
    if (verdict != MK_ERROR)
        mk_log_error(c->manager->log,
                     "the plugin %s returned %d from on_accept: expected MK_NEXT, MK_WAIT or MK_ERROR; the "
                     "connection was refused",
                     hook->name, (int)verdict);
    reject_connection(c);
    return false;
}

/* A running timeout means that a hook waits: the hook is called again only after more input has arrived. */
static void run_accept_hooks(struct mk_conn *c)
{
    const struct mk_conn_manager *s = c->manager;
    mk_conn_begin_serving(c);
    bool go = c->timeout == MK_TIMEOUT_NONE || read_more_input(c);
    while (go && c->hooks_passed < s->n_accept_hooks) {
        go = run_accept_hook(c, &s->accept_hooks[c->hooks_passed]);
        c->hooks_passed += go;
    }
    if (!go) {
        mk_conn_end_serving(c);
        return;
    }
    mk_err e = c->admission == MK_CONN_COUNTED ? 0 : mk_conn_set_client_addr(c, &c->peer);
    if (e) {
        reject_with_status(c, e == -EDQUOT ? 429 : 503);
        mk_conn_end_serving(c);
        return;
    }
    if (c->wants_tls) {
        mk_tls_handshake_serve(c);
        return;
    }
    if (c->wants_h2) {
        c->manager->http2->serve(c);
        return;
    }
    c->ops = &mk_h1_ops;
    mk_h1_serve(c);
}

static void on_accept_hook_timeout(struct mk_conn *c, enum mk_conn_timeout timeout)
{
    (void)timeout;
    mk_conn_close(c, MK_OUTCOME_TIMEOUT);
}

static void on_conn_close(struct mk_conn *c, enum mk_outcome outcome)
{
    (void)c;
    (void)outcome;
}

const struct mk_conn_ops mk_accept_hooks_ops = {
    .advance = run_accept_hooks, .on_timeout = on_accept_hook_timeout, .on_close = on_conn_close};
