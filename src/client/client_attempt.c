/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client_attempt.h"

#include "client/client_receive.h"
#include "client/client_send.h"
#include "client/client_state.h"
#include "upstream/link_type.h"
#include "upstream/pool.h"
#include "upstream/reason.h"

bool mk_client_attempt_begin(struct mk_client *c, void (*on_link)(void *c, unsigned which))
{
    c->link = mk_link_take(c->worker, c->to, &c->wish, on_link, c);
    if (c->link)
        mk_link_hear_out(c->link, c->on_out);
    return c->link;
}

void mk_client_attempt_give_up(struct mk_client *c, int error)
{
    mk_client_state_fail(c, error, mk_reason_text(error), MK_LINK_CLOSE);
}

/* May it be sent whole once more, whatever becomes of it? */
static bool is_repeatable(const struct mk_client *c)
{
    const struct mk_client_content *source = c->content.source;
    return c->is_safe_to_repeat && (!c->content.length || !source || source->rewind);
}

/* A request that cannot be repeated looks first. */
bool mk_client_attempt_is_alive(struct mk_client *c)
{
    char byte;
    if (is_repeatable(c) || !mk_link_was_kept(c->link))
        return true;
    return mk_link_read(c->link, &byte, 1) == -EAGAIN;
}

static bool was_closed(int error)
{
    return error == -ECONNRESET || error == -EPIPE;
}

/* The server closed a connection that it had kept. That is no fault of it, and says nothing about the
 * request. */
static bool is_stale(const struct mk_client *c, int error)
{
    return mk_link_was_kept(c->link) && !c->has_answered && was_closed(error);
}

static bool has_other_servers(const struct mk_client *c)
{
    unsigned n = mk_upstream_count(c->to);
    uint64_t all = n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    return (c->wish.avoid & all) != all;
}

/* Chooses another server; false: there is none, or it would be one attempt too many. */
static bool choose_other(struct mk_client *c)
{
    int server = mk_link_server(c->link);
    if (!c->is_safe_to_repeat || c->limits.tries <= 1 || server < 0)
        return false;
    c->wish.avoid |= UINT64_C(1) << server;
    c->wish.server = -1;
    c->wish.fresh = c->wants_fresh;
    c->limits.tries--;
    return has_other_servers(c) && mk_pool_may_retry(c->to, c->worker);
}

/* Nothing of a head that broke off was handed on. What an overloaded server of FastCGI answers is no
 * response. */
static bool is_final(const struct mk_client *c, int error)
{
    return c->has_answered && error != -EBUSY && !was_closed(error);
}

static bool can_repeat(struct mk_client *c, int error)
{
    if (is_final(c, error))
        return false;
    if (is_stale(c, error)) {
        c->wish.fresh = true;
        return (c->is_safe_to_repeat || c->sent == 0) && mk_client_send_rewind(c);
    }
    return choose_other(c) && mk_client_send_rewind(c);
}

bool mk_client_attempt_again(struct mk_client *c, int error, const char *problem,
                             void (*on_link)(void *c, unsigned which))
{
    bool stale = is_stale(c, error), repeats = can_repeat(c, error);
    enum mk_link_end how = stale || error == -ENOMEM ? MK_LINK_CLOSE : MK_LINK_FAILED;
    mk_link_explain(c->link, error, problem);
    if (!repeats) {
        mk_client_state_fail(c, error, problem, how);
        return false;
    }
    mk_client_state_abandon(c, how);
    mk_client_state_move(c, MK_CLIENT_WAITING);
    mk_client_receive_again(c);
    if (mk_client_attempt_begin(c, on_link))
        return true;
    mk_client_state_fail(c, -ENOMEM, "no memory for a connection", MK_LINK_CLOSE);
    return false;
}

/* RetryBudget does not count: the server answers none of its requests, so each is answered once. */
bool mk_client_attempt_move(struct mk_client *c, void (*on_link)(void *c, unsigned which))
{
    int server = mk_link_server(c->link);
    if (!is_repeatable(c) || c->has_answered || c->limits.tries <= 1 || server < 0)
        return false;
    c->wish.avoid |= UINT64_C(1) << server;
    c->wish.server = -1;
    c->wish.fresh = c->wants_fresh;
    c->limits.tries--;
    mk_client_state_abandon(c, MK_LINK_CLOSE);
    mk_client_state_move(c, MK_CLIENT_WAITING);
    mk_client_receive_again(c);
    if (mk_client_send_rewind(c) && mk_client_attempt_begin(c, on_link))
        return true;
    mk_client_state_fail(c, -ENOMEM, "no memory for a connection", MK_LINK_CLOSE);
    return true;
}
