/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/driver.h"

#include "proto/service.h"
#include "web/filter.h"
#include "web/limits.h"

/* ---- States ---- */

#define TO MK_SM_TO

static const struct mk_sm_states states = {
    MK_SM_STATE(MK_DRIVER_OPEN, "open",
                TO(MK_DRIVER_HALF_CLOSED_REMOTE) | TO(MK_DRIVER_HALF_CLOSED_LOCAL) | TO(MK_DRIVER_CLOSED)),
    /* An Upgrade is a request without content, and a tunnel follows it. */
    MK_SM_STATE(MK_DRIVER_HALF_CLOSED_REMOTE, "remote closed",
                TO(MK_DRIVER_HALF_CLOSED_REMOTE) | TO(MK_DRIVER_CLOSED) | TO(MK_DRIVER_OPEN)),
    MK_SM_STATE(MK_DRIVER_HALF_CLOSED_LOCAL, "local closed",
                TO(MK_DRIVER_HALF_CLOSED_LOCAL) | TO(MK_DRIVER_CLOSED)),
    MK_SM_STATE(MK_DRIVER_CLOSED, "closed", TO(MK_DRIVER_CLOSED)),
};

static const struct mk_sm_states input_states = {
    MK_SM_STATE(MK_INPUT_WANTED, "wanted", TO(MK_INPUT_HELD) | TO(MK_INPUT_UNWANTED)),
    MK_SM_STATE(MK_INPUT_HELD, "held", TO(MK_INPUT_WANTED) | TO(MK_INPUT_UNWANTED)),
    MK_SM_STATE(MK_INPUT_UNWANTED, "unwanted", 0),
};

static const struct mk_sm_states reply_states = {
    /* Back to PENDING: an error takes the place of what has not left the scratch. */
    MK_SM_STATE(MK_REPLY_PENDING, "pending",
                TO(MK_REPLY_PENDING) | TO(MK_REPLY_BUFFERED) | TO(MK_REPLY_CONTENT) | TO(MK_REPLY_RECORDED)),
    MK_SM_STATE(MK_REPLY_BUFFERED, "buffered",
                TO(MK_REPLY_PENDING) | TO(MK_REPLY_CONTENT) | TO(MK_REPLY_RECORDED)),
    MK_SM_STATE(MK_REPLY_CONTENT, "content",
                TO(MK_REPLY_PENDING) | TO(MK_REPLY_SPENT) | TO(MK_REPLY_RECORDED)),
    MK_SM_STATE(MK_REPLY_SPENT, "spent", TO(MK_REPLY_RECORDED)),
    MK_SM_STATE(MK_REPLY_RECORDED, "recorded", 0),
};

static const char *broken(const void *owner)
{
    const struct mk_driver *d = owner;
    return mk_driver_is_written(d) && d->reply.is == MK_REPLY_PENDING ? "its response is begun" : NULL;
}

static const char *reply_broken(const void *owner)
{
    const struct mk_driver *d = owner;
    return d->reply.is == MK_REPLY_PENDING && d->sent ? "no content is sent" : NULL;
}

const struct mk_sm_machine mk_driver_machine = {"exchange", &states, MK_DRIVER_STATES, broken};
const struct mk_sm_machine mk_driver_input_machine = {"request content", &input_states, MK_INPUT_STATES,
                                                      NULL};
const struct mk_sm_machine mk_driver_reply_machine = {"response", &reply_states, MK_REPLY_STATES,
                                                      reply_broken};

/* ---- Life ---- */

/* A tunnel lives long, and there may be many: its request gets no more memory than it is known to need. */
MK_COLD static struct mk_exchange *new_small(struct mk_service *s, size_t room)
{
    struct mk_arena arena;
    mk_arena_init(&arena, &s->arenas);
    if (!mk_arena_set_first_block(&arena, sizeof(struct mk_exchange) + room))
        return NULL;
    return mk_exchange_new_in(&arena, s->web, s->loop->now_ms, s->loop->now_unix);
}

void *mk_driver_new(struct mk_conn *c, size_t size, unsigned version, const struct mk_request_ops *ops,
                    size_t room)
{
    struct mk_service *s = c->service;
    struct mk_exchange *x = MK_UNLIKELY(room)
                                ? new_small(s, room)
                                : mk_exchange_new(s->web, &s->arenas, s->loop->now_ms, s->loop->now_unix);
    struct mk_driver *d = x ? mk_arena_alloc_inline(&x->arena, size) : NULL;
    if (!d) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    *d = (struct mk_driver){.conn = c, .x = x};
    mk_sm_init(&d->state, &mk_driver_machine, MK_DRIVER_OPEN);
    mk_sm_init(&d->input, &mk_driver_input_machine, MK_INPUT_WANTED);
    mk_sm_init(&d->reply, &mk_driver_reply_machine, MK_REPLY_PENDING);
    x->request.version = version;
    x->request.hosts = c->hosts;
    x->request.encrypted = c->stream.tls != NULL;
    x->request.is_told = x->request.is_told_secure = c->is_told_secure;
    x->request.peer = &c->peer;
    x->request.ops = ops;
    x->request.ops_ctx = d;
    c->n_requests++;
    return d;
}

void mk_driver_record(struct mk_driver *d, enum mk_outcome ending)
{
    if (!mk_sm_may(&d->reply, &mk_driver_reply_machine, MK_REPLY_RECORDED)) /* it is there */
        return;
    mk_driver_move_reply(d, MK_REPLY_RECORDED);
    mk_service_record(d->conn->service, d->x, d->ending ? d->ending : ending, d->sent);
}

void mk_driver_free(struct mk_driver *d)
{
    if (d->coldread)
        mk_coldread_forget(d->coldread);
    mk_exchange_free(d->x);
}

/* ---- The request ---- */

unsigned mk_driver_limit_content(struct mk_driver *d, size_t head_len, uint64_t length)
{
    const struct mk_limits *l = d->conn->service->limits;
    uint64_t max = mk_driver_limits(d)->content_max;
    if (mk_driver_limit_head(d, head_len))
        return 413;
    d->content_cap = l->request_max ? l->request_max - head_len : UINT64_MAX;
    d->x->body_open = d->x->request.site->has_body_max;
    d->content_max = d->x->body_open ? d->content_cap : mk_min(max, d->content_cap);
    bool is_huge = length > INT64_MAX; /* more than mk_request_length can return */
    if (length <= d->content_max && !is_huge)
        return 0;
    mk_limits_report_length(d->x, max, length > d->content_cap);
    return 413;
}

mk_err mk_driver_limit_body(void *ctx, uint64_t max)
{
    struct mk_driver *d = ctx;
    uint64_t length = d->x->request.length;
    bool is_known = length != MK_REQUEST_LENGTH_UNKNOWN;
    d->content_max = mk_min(max, d->content_cap);
    return d->received > d->content_max || (is_known && length > d->content_max) ? -EMSGSIZE : 0;
}

MK_COLD void mk_driver_cut_off(struct mk_driver *d)
{
    d->x->read_error = -ECONNRESET;
    if (!d->ending)
        d->ending = MK_OUTCOME_CLIENT_ABORTED;
}

bool mk_driver_is_abandoned(const struct mk_driver *d)
{
    if (!mk_conn_is_half_closed(d->conn) || d->awaits == MK_AWAITS_CONTENT)
        return false;
    return d->x->follows_client || (!d->coldread && !mk_driver_limits(d)->handler_ms);
}

bool mk_driver_wants_continue(const struct mk_driver *d)
{
    const struct mk_response *r = &d->x->response;
    return d->input.is == MK_INPUT_HELD && r->status < 300 &&
           mk_filter_origin(&d->x->response.content)->source;
}

mk_err mk_driver_local(void *ctx, struct mk_addr *out)
{
    const struct mk_driver *d = ctx;
    return mk_conn_local(d->conn, out);
}

void mk_driver_tls(void *ctx, struct mk_tls_facts *out)
{
    const struct mk_driver *d = ctx;
    mk_conn_tls(d->conn, out);
}

/* ---- The response ---- */

static void on_warm(void *data)
{
    struct mk_driver *d = data;
    d->coldread = NULL;
    d->x->request.ops->resume(d->x->request.ops_ctx);
}

bool mk_driver_is_warm(struct mk_driver *d, struct mk_part *part)
{
    struct mk_service *s = d->conn->service;
    uint64_t offset = part->offset, len = part->len;
    if (d->coldread || offset < part->warm_to)
        return !d->coldread;
    bool warm = mk_coldread_is_warm(s, part->file, offset, len);
    part->warm_to = offset + (len < MK_COLDREAD_WINDOW ? len : MK_COLDREAD_WINDOW);
    if (!warm) /* without a helper thread, the worker itself waits for the disk */
        d->coldread = mk_coldread_start(s, part->file, offset, len, on_warm, d);
    return !d->coldread;
}

/* The content has no data yet: because of a disk? */
static enum mk_driver_pull wait_for_content(struct mk_driver *d)
{
    struct mk_content *content = &d->x->response.content;
    bool in_the_way;
    if (d->awaits == MK_AWAITS_NOTHING) /* a filter has yielded to others and resumed itself */
        return MK_PULL_WAITS;
    d->coldread = mk_coldread_missed(d->conn->service, content, &in_the_way, on_warm, d);
    if (!in_the_way || d->coldread)
        return MK_PULL_WAITS;
    mk_driver_resume(d);
    return MK_PULL_AGAIN;
}

enum mk_driver_pull mk_driver_pull(struct mk_driver *d, char *room, size_t cap, size_t *n)
{
    if (d->coldread || d->awaits != MK_AWAITS_NOTHING)
        return MK_PULL_WAITS;
    if (d->to_send < cap)
        cap = (size_t)d->to_send;
    mk_driver_call(d);
    ssize_t got = cap ? mk_content_pull(&d->x->response.content, room, cap) : 0;
    if (got == -EAGAIN)
        return wait_for_content(d);
    mk_driver_resume(d);
    if (got == 0)
        return mk_driver_is_whole(d) ? MK_PULL_END : MK_PULL_FAILED;
    if (got < 0 || (size_t)got > cap)
        return MK_PULL_FAILED;
    *n = (size_t)got;
    return MK_PULL_DATA;
}

MK_COLD enum mk_outcome mk_driver_fail(struct mk_driver *d)
{
    d->ending = mk_exchange_is_cut_off(d->x) ? MK_OUTCOME_CLIENT_ABORTED : MK_OUTCOME_FAILED;
    return d->ending;
}

MK_COLD void mk_driver_replace(struct mk_driver *d)
{
    unsigned status = d->x->response.fails_with;
    if (!status || mk_exchange_is_cut_off(d->x)) {
        mk_driver_fail(d);
        status = mk_exchange_is_cut_off(d->x) ? 400 : 500;
    }
    d->sent = 0;
    mk_driver_move_reply(d, MK_REPLY_PENDING);
    mk_flow_replace(d->x, status);
}

/* ---- Tunnels ---- */

static void throw_away(struct mk_driver *d)
{
    const struct mk_request *r = &d->x->request;
    char waste[4096];
    while (r->ops->read(r->ops_ctx, waste, sizeof waste) > 0)
        continue;
}

void mk_driver_feed_tunnel(struct mk_driver *d)
{
    struct mk_content *content = &d->x->response.content;
    bool takes_input = content->tunnel->on_input != NULL;
    if (d->input.is == MK_INPUT_WANTED && takes_input && !content->tunnel->on_input(content->source_ctx))
        mk_driver_move_input(d, MK_INPUT_UNWANTED);
    if (d->input.is == MK_INPUT_UNWANTED)
        throw_away(d);
}

bool mk_driver_is_tunnel_input_over(const struct mk_driver *d, bool unread)
{
    bool by_source = !d->x->response.content.tunnel->on_input;
    return (mk_driver_is_received(d) && !unread) || d->input.is == MK_INPUT_UNWANTED ||
           (by_source && mk_driver_is_written(d));
}
