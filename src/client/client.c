/* SPDX-License-Identifier: Apache-2.0 */
/* The client as its callers see it: joins the attempts, the sending and the receiving of an exchange. */
#include <monkey/client.h>

#include "client/client_ahead.h"
#include "client/client_attempt.h"
#include "client/client_clock.h"
#include "client/client_handshake.h"
#include "client/client_memory.h"
#include "client/client_receive.h"
#include "client/client_send.h"
#include "client/client_state.h"
#include "upstream/link_type.h"
#include "upstream/pool.h"

/* ---- Going on ---- */

static void on_link(void *ctx, unsigned which);

/* The connection is of no use any more, and there is no head. True: another one is being made. */
static bool lose(struct mk_client *c, int error, const char *problem)
{
    return mk_client_attempt_again(c, error, problem, on_link);
}

/* True: there is a connection now. */
static bool connect_link(struct mk_client *c)
{
    while (c->state == MK_CLIENT_WAITING) {
        int e = mk_link_state(c->link);
        if (e == -EAGAIN)
            return false;
        if (e) {
            mk_client_attempt_give_up(c, e);
            return false;
        }
        mk_client_state_move(c, MK_CLIENT_OPEN);
        if (mk_client_attempt_is_alive(c))
            mk_client_send_begin(c);
        else if (!lose(c, -ECONNRESET, "the server closed the connection"))
            return false;
    }
    return mk_client_state_is_connected(c);
}

/* The source of the request's content failed. A response that has begun is complete all the same. */
static void fail_source(struct mk_client *c)
{
    if (c->state == MK_CLIENT_OPEN)
        mk_client_state_fail(c, c->error, c->problem, MK_LINK_CLOSE);
    else
        mk_client_state_break(c, c->error, c->problem);
}

/* Connects and sends, as far as it goes. True: mk_client_head() has news. */
static bool go_on(struct mk_client *c)
{
    if (!connect_link(c))
        return c->state == MK_CLIENT_FAILED;
    switch (mk_client_send_go(c)) {
    case MK_CLIENT_SENDING_WAITS:
        return false;
    case MK_CLIENT_SENDING_TURNS:
        mk_client_clock_defer(c);
        return false;
    case MK_CLIENT_SENDING_BROKEN:
        return true; /* a response may be there to be read */
    case MK_CLIENT_SENDING_FAILED:
        fail_source(c);
        return true;
    }
    return false;
}

/* ---- Events: the caller may free the exchange in on_ready ---- */

static void on_link(void *ctx, unsigned which)
{
    struct mk_client *c = ctx;
    bool was_connected = mk_client_state_is_connected(c); /* what came before was of an attempt to connect */
    bool is_readable = which & (MK_READABLE | MK_ENDED | MK_HUNG_UP);
    c->has_ended |= was_connected && (which & (MK_ENDED | MK_HUNG_UP));
    c->can_read |= is_readable;
    if (is_readable && c->state == MK_CLIENT_CONTENT) /* from now on it waits for its reader */
        mk_client_clock_await(c, MK_CLIENT_AWAITS_NOTHING);
    bool has_news = go_on(c);
    has_news |= is_readable && mk_client_state_is_connected(c);
    if (has_news && mk_client_ahead_go(c))
        c->on_ready(c->ctx);
}

/* The server that has the request is down: another one may answer. */
static void on_out(void *ctx)
{
    struct mk_client *c = ctx;
    if (c->state == MK_CLIENT_OPEN && mk_client_attempt_move(c, on_link) &&
        (c->state == MK_CLIENT_FAILED || go_on(c)))
        c->on_ready(c->ctx);
}

static void on_later(void *ctx)
{
    struct mk_client *c = ctx;
    if (c->state == MK_CLIENT_WAITING || mk_client_state_is_connected(c))
        (void)go_on(c);
    if (mk_client_ahead_go(c))
        c->on_ready(c->ctx);
}

static void on_due(void *ctx)
{
    struct mk_client *c = ctx;
    if (mk_client_clock_is_look(c))
        mk_client_ahead_look(c);
    if (!mk_client_clock_is_due(c))
        return;
    const char *problem = mk_client_clock_problem(c);
    if (c->state != MK_CLIENT_OPEN) {
        mk_link_explain(c->link, -ETIMEDOUT, problem);
        mk_client_state_fail(c, -ETIMEDOUT, problem, MK_LINK_FAILED);
    } else if (lose(c, -ETIMEDOUT, problem) && !go_on(c)) {
        return;
    }
    c->on_ready(c->ctx);
}

/* ---- The beginning ---- */

enum { AROUND_HEAD = 128 }; /* what wires usually add to all of it */

/* No wire adds more than 8 bytes to a field. */
static size_t head_len(const struct mk_client_request *ask)
{
    size_t len = ask->method.len + ask->target.len + ask->lines.len + ask->upgrade.len;
    for (size_t i = 0; i < ask->n_fields && len < MK_CLIENT_SEND_HEAD_MAX; i++)
        len += ask->fields[i].name.len + ask->fields[i].value.len + 8;
    return len;
}

static mk_err write_request(struct mk_client *c, const struct mk_client_request *ask)
{
    c->out = mk_buf_growing(MK_CLIENT_SEND_BUFFER_MAX);
    size_t len = head_len(ask);
    c->problem = "its head is too long";
    if (len >= MK_CLIENT_SEND_HEAD_MAX)
        return -E2BIG;
    c->out.cap = len + AROUND_HEAD;
    c->out.p = mk_client_memory_take(c->blocks, &c->out.cap);
    if (!c->out.p)
        return -ENOMEM;
    c->problem = "its content has a negative length";
    if (ask->length < 0 && ask->length != MK_LENGTH_UNKNOWN)
        return -EINVAL;
    mk_err e = c->wire->write_head(&c->out, ask, &c->problem);
    c->head_len = c->out.len;
    return c->out.failed ? -ENOMEM : e;
}

static struct mk_client *make(struct mk_worker *w, const struct mk_client_request *ask)
{
    static const struct mk_wire_ops *const wires[] = {[MK_WIRE_HTTP] = &mk_wire_http,
                                                      [MK_WIRE_FASTCGI] = &mk_wire_fastcgi,
                                                      [MK_WIRE_SCGI] = &mk_wire_scgi,
                                                      [MK_WIRE_UWSGI] = &mk_wire_uwsgi};
    struct mk_spare *blocks = mk_pool_blocks(ask->to, w);
    size_t size = sizeof(struct mk_client) + ask->upgrade.len + MK_UPGRADE_ACCEPT_LEN;
    struct mk_client *c = mk_client_memory_take(blocks, &size);
    if (!c)
        return NULL;
    *c = (struct mk_client){
        .worker = w,
        .blocks = blocks,
        .size = size,
        .to = ask->to,
        .wire = wires[ask->wire],
        .is_safe_to_repeat = ask->is_safe_to_repeat,
        .is_tls = mk_upstream_is_tls(ask->to),
        .wish = ask->wish,
        .limits = ask->limits,
        .wants_fresh = ask->wish.fresh,
        .server = -1,
        .content = {.text = ask->content,
                    .source = ask->content.p && !ask->upgrade.len ? NULL : ask->source,
                    .ctx = ask->source_ctx,
                    .length = ask->length,
                    .is_held = mk_wire_awaits_continue(ask)},
        .input.on_error_text = ask->on_error_text,
        .upgrade_len = ask->upgrade.len,
    };
    if (ask->upgrade.len) {
        memcpy(c->upgrade, ask->upgrade.p, ask->upgrade.len);
        c->accept_len = mk_client_handshake_accept(ask, c->upgrade + ask->upgrade.len);
    }
    c->frame = c->wire->frame(ask);
    mk_client_receive_begin(c, ask);
    return c;
}

struct mk_client *mk_client_start(struct mk_worker *w, const struct mk_client_request *request,
                                  void (*on_ready)(void *ctx), void *ctx)
{
    struct mk_client_request measured = *request, *ask = &measured;
    if (ask->content.p)
        ask->length = (int64_t)ask->content.len;
    struct mk_client *c = make(w, ask);
    if (!c)
        return NULL;
    c->on_ready = on_ready;
    c->on_out = on_out;
    c->ctx = c->input.ctx = ctx;
    mk_err e = write_request(c, ask);
    bool has_memory = e != -ENOMEM && mk_client_clock_start(c, on_due, on_later);
    if (has_memory && !e)
        has_memory = mk_client_attempt_begin(c, on_link);
    if (!has_memory) {
        mk_client_free(c);
        return NULL;
    }
    if (e) {
        mk_client_state_fail(c, e, c->problem, MK_LINK_CLOSE);
        mk_client_clock_defer(c);
        return c;
    }
    mk_pool_count_request(c->to, w);
    if (!mk_link_put_off(c->link) && go_on(c))
        mk_client_clock_defer(c);
    return c;
}

void mk_client_resume(struct mk_client *c)
{
    if (mk_client_state_is_connected(c) && go_on(c))
        mk_client_clock_defer(c);
}

/* Content that is all there needs its end still, so that the connection can be kept: FastCGI has a record for
 * it, which has usually come. */
static void read_end(struct mk_client *c)
{
    char room[64];
    if (c->state == MK_CLIENT_CONTENT && mk_reply_is_over(&c->input.reply))
        mk_client_receive_content(c, room, sizeof room);
}

void mk_client_free(struct mk_client *c)
{
    if (!c)
        return;
    read_end(c);
    mk_client_state_abandon(c, MK_LINK_CLOSE);
    mk_client_ahead_fini(c);
    mk_client_clock_fini(c);
    mk_client_receive_fini(c);
    mk_client_memory_give(c->blocks, c->out.p, c->out.cap);
    mk_client_memory_give(c->blocks, c, c->size);
}

/* ---- The response ---- */

/* What the connection broke by while we sent is said if there is nothing to read either. */
static int read_head(struct mk_client *c)
{
    int sending = c->error;
    const char *problem = c->problem;
    int e = mk_client_receive_head(c);
    if (e != -EAGAIN || c->output != MK_CLIENT_OUTPUT_BROKEN)
        return e;
    c->problem = problem;
    return sending;
}

int mk_client_head(struct mk_client *c)
{
    switch ((int)c->state) {
    case MK_CLIENT_FAILED:
        return c->error;
    case MK_CLIENT_WAITING:
        return -EAGAIN;
    case MK_CLIENT_OPEN:
        break;
    default:
        return 0;
    }
    bool was_held = c->output == MK_CLIENT_OUTPUT_HELD;
    int e = read_head(c);
    if (e == 0 && c->state == MK_CLIENT_UPGRADED) {
        mk_client_send_upgraded(c);
        mk_client_resume(c);
    } else if (was_held && c->output == MK_CLIENT_OUTPUT_SENDING) {
        mk_client_resume(c);
    }
    if (e >= 0 || e == -EAGAIN)
        return e;
    if (lose(c, e, c->problem) && go_on(c) && c->state != MK_CLIENT_FAILED)
        mk_client_clock_defer(c);
    return c->state == MK_CLIENT_FAILED ? c->error : -EAGAIN;
}

bool mk_client_spool(struct mk_client *c, struct mk_request *request)
{
    bool has_more = c->state == MK_CLIENT_CONTENT && !mk_reply_is_over(&c->input.reply);
    return !has_more || c->ahead.request || mk_client_state_is_event_stream(c) ||
           mk_client_ahead_start(c, request);
}

ssize_t mk_client_read(struct mk_client *c, char *room, size_t cap)
{
    if (c->ahead.request)
        return mk_client_ahead_read(c, room, cap);
    switch ((int)c->state) {
    case MK_CLIENT_CONTENT:
    case MK_CLIENT_UPGRADED:
        return mk_client_receive_content(c, room, cap);
    case MK_CLIENT_DONE:
        return 0;
    case MK_CLIENT_FAILED:
        return c->error;
    default:
        return -EAGAIN;
    }
}

bool mk_client_whole(struct mk_client *c, mk_str *content)
{
    return c->state == MK_CLIENT_CONTENT && mk_client_receive_whole(c, content);
}
