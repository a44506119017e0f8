/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h1_request.h"

#include "http/upgrade.h"
#include "proto/h1_input.h"
#include "proto/h1_output.h"

enum { TRAILERS_MAX = 8 * 1024 }; /* bytes after chunked content */

static ssize_t on_read(void *ctx, char *room, size_t cap)
{
    return mk_h1_input_read(ctx, room, cap);
}

static void on_resume(void *ctx)
{
    struct mk_h1 *h = ctx;
    h->go = true;
    mk_conn_resume(h->conn);
}

static mk_err on_local(void *ctx, struct mk_peer *out)
{
    struct mk_h1 *h = ctx;
    return mk_conn_local(h->conn, out);
}

static void on_tls(void *ctx, struct mk_tls_facts *out)
{
    const struct mk_h1 *h = ctx;
    mk_conn_tls(h->conn, out);
}

static const struct mk_request_ops request_ops = {
    .read = on_read, .resume = on_resume, .local = on_local, .tls = on_tls};

struct mk_h1 *mk_h1_request_new(struct mk_conn *c)
{
    struct mk_service *s = c->service;
    struct mk_exchange *x = mk_exchange_new(s->web, &s->arenas, s->loop->now_ms, s->loop->now_unix);
    struct mk_h1 *h = x ? mk_arena_alloc(&x->arena, sizeof *h) : NULL;
    if (!h) {
        if (x)
            mk_exchange_free(x);
        return NULL;
    }
    *h = (struct mk_h1){.conn = c, .x = x, .go = true};
    x->request.version = 11;
    x->request.encrypted = c->stream.tls != NULL;
    x->request.peer = &c->peer;
    x->request.ops = &request_ops;
    x->request.ops_ctx = h;
    c->h1 = h;
    c->n_requests++;
    return h;
}

/* No memory for a request: the peer is told with what needs none. */
MK_COLD static bool give_up(struct mk_conn *c)
{
    mk_h1_output_busy(c, 503);
    mk_log_warn(c->service->log, "a request was refused: out of memory");
    mk_conn_close(c, MK_ENDING_ABORTED);
    return false;
}

bool mk_h1_request_refuse(struct mk_conn *c, unsigned status)
{
    struct mk_h1 *h = c->h1 ? c->h1 : mk_h1_request_new(c);
    if (!h)
        return give_up(c);
    h->keep = false;
    h->body = MK_BODY_NONE;
    if (!h->ending) /* else it is known better */
        h->ending = status == 408 ? MK_ENDING_TIMEOUT : MK_ENDING_REFUSED;
    mk_flow_refuse(h->x, status);
    if (c->state != MK_CONN_FLOW)
        mk_conn_move(c, MK_CONN_FLOW);
    return true;
}

/* Head and fields move from the window, which the next turn overwrites, into the arena. */
static bool keep_head(struct mk_exchange *x, struct mk_head *head, mk_str bytes)
{
    mk_str copy = mk_arena_copy(&x->arena, bytes);
    struct mk_field *fields = mk_arena_alloc(&x->arena, sizeof *fields * head->fields.n);
    if (!copy.p || !fields)
        return false;
    ptrdiff_t by = copy.p - bytes.p;
    for (unsigned i = 0; i < head->fields.n; i++) {
        fields[i] = head->fields.at[i];
        fields[i].name.p += by;
        fields[i].value.p += by;
    }
    head->fields.at = fields;
    head->method_text.p += by;
    head->target.p += by;
    return true;
}

/* How the content comes in, and whether there is too much of it. 0 or a status. */
static unsigned take_framing(struct mk_h1 *h, const struct mk_framing *f, size_t head_len)
{
    const struct mk_limits *l = h->conn->service->limits;
    struct mk_request *r = &h->x->request;
    uint64_t rest = l->request_max > head_len ? l->request_max - head_len : 0;
    h->content_max = l->request_max && rest < l->content_max ? rest : l->content_max;
    h->body = f->body;
    h->left = f->length;
    h->expects_continue = f->expect_continue && f->body != MK_BODY_NONE;
    r->length = f->body == MK_BODY_CHUNKED ? MK_REQUEST_LENGTH_UNKNOWN : f->length;
    if (l->request_max && head_len > l->request_max)
        return 413;
    if (f->length > h->content_max || f->length > INT64_MAX) /* more than mk_request_length could tell */
        return 413;
    if (f->body != MK_BODY_CHUNKED)
        return 0;
    h->chunked = mk_arena_alloc(&h->x->arena, sizeof *h->chunked);
    if (!h->chunked)
        return 503;
    mk_chunked_init(h->chunked, TRAILERS_MAX);
    return 0;
}

static bool may_keep(const struct mk_conn *c, const struct mk_framing *f)
{
    const struct mk_limits *l = c->service->limits;
    return f->keep_alive && l->keep_alive && !c->service->draining &&
           (!l->requests_max || c->n_requests < l->requests_max);
}

/* One that could be a plain request as well, so that whoever does not know the other protocol can answer it.
 */
MK_COLD static void look_for_tunnel(struct mk_request *r, const struct mk_framing *f)
{
    if (r->method == MK_METHOD_GET && r->version > 10 && f->body == MK_BODY_NONE)
        r->tunnel = mk_upgrade_protocol(&r->fields);
}

static unsigned take_request(struct mk_h1 *h, struct mk_head *head)
{
    struct mk_request *r = &h->x->request;
    struct mk_framing framing;
    r->version = head->minor ? 11 : 10;
    r->method = head->method;
    r->method_text = head->method_text;
    r->fields = head->fields;
    mk_service_leave_trail(h->conn->service, head->method_text, head->target);
    int bad = mk_exchange_set_target(h->x, head->target, (mk_str){NULL, 0});
    int worse = mk_framing_of(head, &framing);
    if (!bad && !r->host.p)
        r->host = framing.host; /* also for a refusal: the host may have a page for it */
    if (bad || worse)
        return (unsigned)(bad ? bad : worse);
    if (MK_UNLIKELY(mk_fields_has(&r->fields, MK_FIELD_UPGRADE)))
        look_for_tunnel(r, &framing);
    h->may_follow = framing.keep_alive;
    h->keep = may_keep(h->conn, &framing);
    return take_framing(h, &framing, head->len);
}

bool mk_h1_request_start(struct mk_conn *c, struct mk_head *head)
{
    struct mk_h1 *h = mk_h1_request_new(c);
    mk_str bytes = mk_str_take(mk_conn_input(c), head->len);
    if (!h)
        return give_up(c);
    mk_conn_use_input(c, head->len);
    c->seen = 0;
    if (!keep_head(h->x, head, bytes))
        return mk_h1_request_refuse(c, 503);
    unsigned status = take_request(h, head);
    if (status)
        return mk_h1_request_refuse(c, status);
    mk_conn_move(c, MK_CONN_FLOW);
    return true;
}
