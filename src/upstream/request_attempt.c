/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_attempt.h"

#include "upstream/conn.h"
#include "upstream/connect_error.h"
#include "upstream/pool.h"
#include "upstream/request_receive.h"
#include "upstream/request_send.h"
#include "upstream/request_state.h"

bool mk_upstream_request_attempt_start(struct mk_upstream_request *c,
                                       void (*on_conn)(void *c, unsigned which))
{
    c->conn = mk_upstream_conn_acquire(c->worker, c->to, &c->options, on_conn, c);
    if (!c->conn)
        return false;
    mk_upstream_conn_set_notes_events(c->conn);
    mk_upstream_conn_set_on_down(c->conn, c->on_down);
    return true;
}

void mk_upstream_request_attempt_fail(struct mk_upstream_request *c, int error)
{
    mk_upstream_request_state_fail(c, error, mk_connect_error_text(error), MK_UPSTREAM_CONN_CLOSE);
}

/* May the complete request be sent again, whatever happened to the first attempt? */
static bool is_repeatable(const struct mk_upstream_request *c)
{
    const struct mk_upstream_request_body *source = c->content.source;
    return c->is_safe_to_repeat && (!c->content.length || !source || source->rewind);
}

/* Checks whether the connection is still open before a non-idempotent request uses it. */
bool mk_upstream_request_attempt_check(struct mk_upstream_request *c)
{
    char byte;
    if (is_repeatable(c) || !mk_upstream_conn_was_reused(c->conn))
        return true;
    return mk_upstream_conn_read(c->conn, &byte, 1) == -EAGAIN;
}

static bool is_conn_closed_error(int error)
{
    return error == -ECONNRESET || error == -EPIPE;
}

/* Has the server closed an idle pooled connection? This counts as a failure of neither the server nor the
 * request. */
static bool is_stale_conn(const struct mk_upstream_request *c, int error)
{
    bool is_silent = is_conn_closed_error(error) && !mk_upstream_conn_has_first_byte(c->conn);
    return error == -ESTALE || (is_silent && mk_upstream_conn_was_reused(c->conn));
}

static bool has_untried_servers(const struct mk_upstream_request *c)
{
    unsigned n = mk_upstream_count(c->to);
    uint64_t all = n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    return (c->options.tried & all) != all;
}

/* Chooses another server. False: no server is left, or too many were tried. */
static bool choose_other_server(struct mk_upstream_request *c)
{
    int server = mk_upstream_conn_server(c->conn);
    if (!c->is_safe_to_repeat || c->limits.max_tries <= 1 || server < 0)
        return false;
    c->options.tried |= UINT64_C(1) << server;
    c->options.server = -1;
    c->options.fresh = c->wants_fresh;
    c->limits.max_tries--;
    return has_untried_servers(c) && mk_pool_may_retry(c->to, c->worker);
}

/* Has the server responded, so that a retry is not allowed? An incomplete head was not passed on, and an
 * overload reply of a FastCGI server is not a response. */
static bool is_final_answer(const struct mk_upstream_request *c, int error)
{
    return mk_upstream_conn_has_first_byte(c->conn) && error != -EBUSY && !is_conn_closed_error(error);
}

static bool can_retry(struct mk_upstream_request *c, int error)
{
    if (is_stale_conn(c, error)) {
        c->options.fresh = true;
        return (c->is_safe_to_repeat || c->sent == 0) && mk_upstream_request_send_rewind(c);
    }
    return !is_final_answer(c, error) && choose_other_server(c) && mk_upstream_request_send_rewind(c);
}

bool mk_upstream_request_attempt_retry(struct mk_upstream_request *c, int error, const char *problem,
                                       void (*on_conn)(void *c, unsigned which))
{
    bool stale = is_stale_conn(c, error), repeats = can_retry(c, error);
    enum mk_upstream_conn_disposition how =
        stale || error == -ENOMEM ? MK_UPSTREAM_CONN_CLOSE : MK_UPSTREAM_CONN_FAILED;
    mk_upstream_conn_set_error(c->conn, error, problem);
    if (!repeats) {
        mk_upstream_request_state_fail(c, error, problem, how);
        return false;
    }
    mk_upstream_request_state_cancel(c, how);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_WAITING);
    mk_upstream_request_receive_reset(c);
    if (mk_upstream_request_attempt_start(c, on_conn))
        return true;
    mk_upstream_request_state_fail(c, -ENOMEM, "no memory for a connection", MK_UPSTREAM_CONN_CLOSE);
    return false;
}

/* RetryBudget does not apply: the server responds to none of its requests, so each request causes only one
 * response. */
bool mk_upstream_request_attempt_failover(struct mk_upstream_request *c,
                                          void (*on_conn)(void *c, unsigned which))
{
    int server = mk_upstream_conn_server(c->conn);
    if (!is_repeatable(c) || mk_upstream_conn_has_first_byte(c->conn) || c->limits.max_tries <= 1 ||
        server < 0)
        return false;
    c->options.tried |= UINT64_C(1) << server;
    c->options.server = -1;
    c->options.fresh = c->wants_fresh;
    c->limits.max_tries--;
    mk_upstream_request_state_cancel(c, MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_WAITING);
    mk_upstream_request_receive_reset(c);
    if (mk_upstream_request_send_rewind(c) && mk_upstream_request_attempt_start(c, on_conn))
        return true;
    mk_upstream_request_state_fail(c, -ENOMEM, "no memory for a connection", MK_UPSTREAM_CONN_CLOSE);
    return true;
}
