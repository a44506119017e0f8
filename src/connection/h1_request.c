/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1_request.h"

#include "connection/h1_input.h"
#include "connection/h1_output.h"
#include "connection/h1_state.h"
#include "http/upgrade.h"
#include "web/request_target.h"

enum {
    TRAILERS_MAX = 8 * 1024, /* maximum trailer section */
    TUNNEL_ROOM = 304,       /* memory for response headers and tunnel state, of which a WebSocket needs 160
                              * bytes */
};

static ssize_t on_read_body(void *ctx, char *buf, size_t cap)
{
    return mk_h1_input_read_body(ctx, buf, cap);
}

static void on_resume(void *ctx)
{
    struct mk_h1 *h = ctx;
    mk_http_stream_allow_call(&h->d);
    mk_conn_resume(h->d.conn);
}

static mk_err on_send_1xx(void *ctx, unsigned status, const struct mk_header *fields, size_t n)
{
    return mk_h1_output_1xx(ctx, status, fields, n);
}

static const struct mk_request_ops request_ops = {.read = on_read_body,
                                                  .resume = on_resume,
                                                  .local = mk_http_stream_local_addr,
                                                  .interim = on_send_1xx,
                                                  .tls = mk_http_stream_tls_info,
                                                  .limit_body = mk_http_stream_set_body_max};

static struct mk_h1 *new_h1_request(struct mk_conn *c, size_t space)
{
    struct mk_h1 *h = mk_http_stream_new(c, sizeof *h, 11, &request_ops, space);
    if (!h)
        return NULL;
    h->body = MK_BODY_NONE;
    h->left = 0;
    h->chunked = NULL;
    h->trailers = NULL;
    h->persistence = MK_H1_CLOSED_BY_CLIENT;
    h->delimiter = MK_H1_BY_LENGTH;
    h->from = 0;
    return h;
}

static void attach_request(struct mk_conn *c, struct mk_h1 *h)
{
    mk_conn_set_state(c, MK_CONN_DISPATCH);
    c->h1 = h;
}

struct mk_h1 *mk_h1_request_new(struct mk_conn *c)
{
    struct mk_h1 *h = new_h1_request(c, 0);
    if (h)
        attach_request(c, h);
    return h;
}

/* Returns the memory that a tunnel request needs in addition to its exchange; 0 for other requests, which get
 * a block of the standard size. */
static size_t tunnel_extra_memory(const struct mk_request_head *head)
{
    if (MK_LIKELY(!mk_headers_has(&head->fields, MK_HEADER_UPGRADE)))
        return 0;
    return sizeof(struct mk_h1) + head->len + head->fields.n * sizeof(struct mk_header_field) + TUNNEL_ROOM;
}

/* Rejects a request for lack of memory: sends a static response. */
MK_COLD static bool reject_out_of_memory(struct mk_conn *c)
{
    (void)c->stream.ops->write(&c->stream, mk_h1_output_rejection(503), false);
    mk_log_warn(c->manager->log, "a request was refused: out of memory");
    mk_conn_close(c, MK_OUTCOME_FAILED);
    return false;
}

bool mk_h1_request_reject(struct mk_conn *c, unsigned status)
{
    struct mk_h1 *h = c->h1 ? c->h1 : mk_h1_request_new(c);
    if (!h)
        return reject_out_of_memory(c);
    mk_h1_state_close_after_response(h);
    mk_http_stream_close_remote(&h->d); /* later input is ignored */
    if (!h->d.outcome)
        h->d.outcome = status == 408 ? MK_OUTCOME_TIMEOUT : MK_OUTCOME_REJECTED;
    mk_dispatch_error(h->d.x, status);
    return true;
}

/* Copies head and headers from the input buffer, which the next iteration overwrites, to the arena. */
static bool copy_head_to_arena(struct mk_exchange *x, struct mk_request_head *head, mk_str bytes)
{
    size_t size = sizeof(struct mk_header_field) * head->fields.n;
    struct mk_header_field *fields = mk_arena_alloc_inline(&x->arena, size + bytes.len);
    if (!fields)
        return false;
    char *copy = (char *)fields + size;
    memcpy(copy, bytes.p, bytes.len);
    ptrdiff_t by = copy - bytes.p;
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

/* Sets the framing of the body and checks its length. Returns 0 or a status. */
static unsigned set_body_framing(struct mk_h1 *h, const struct mk_framing *f, size_t head_len)
{
    h->body = f->body;
    h->left = f->length;
    if (f->body == MK_BODY_NONE) {
        h->d.x->request.length = 0;
        mk_http_stream_set_state(&h->d, MK_HTTP_STREAM_HALF_CLOSED_REMOTE);
        return mk_http_stream_check_head_size(&h->d, head_len);
    }
    if (f->expect_continue)
        mk_http_stream_set_input_state(&h->d, MK_INPUT_AWAITS_CONTINUE);
    h->d.x->request.length = f->body == MK_BODY_CHUNKED ? MK_REQUEST_LENGTH_UNKNOWN : f->length;
    unsigned too_much = mk_http_stream_check_body_size(&h->d, head_len, f->length);
    if (too_much || f->body != MK_BODY_CHUNKED)
        return too_much;
    h->chunked = mk_arena_alloc(&h->d.x->arena, sizeof *h->chunked);
    if (!h->chunked)
        return 503;
    mk_chunked_init(h->chunked, TRAILERS_MAX);
    return 0;
}

static enum mk_h1_persistence decide_persistence(const struct mk_conn *c, const struct mk_framing *f)
{
    const struct mk_conn_manager_limits *l = c->manager->limits;
    bool may_follow =
        l->keep_alive && !c->manager->draining && (!l->requests_max || c->n_requests < l->requests_max);
    return !f->keep_alive ? MK_H1_CLOSED_BY_CLIENT : may_follow ? MK_H1_PERSISTENT : MK_H1_CLOSED_BY_SERVER;
}

/* Stores the protocol of the Upgrade header: in `tunnel` for a GET request without a body, in `upgrade` for
 * other requests. HTTP/1.0 requests and CONNECT cannot request an upgrade. */
MK_COLD static void set_upgrade_protocol(struct mk_request *r, const struct mk_framing *f)
{
    bool is_plain = r->received.method == MK_METHOD_GET && f->body == MK_BODY_NONE;
    if (r->version == 10 || r->received.method == MK_METHOD_CONNECT)
        return;
    mk_str protocol = mk_upgrade_protocol(&r->fields);
    if (is_plain)
        r->tunnel = protocol;
    else if (!mk_str_eq(protocol, MK_UPGRADE_WEBSOCKET)) /* WebSocket requires GET (RFC 6455, section 4.1) */
        r->upgrade = protocol;
}

/* Only HTTP/1.0 requests may lack Host. */
MK_COLD static bool add_host_header(struct mk_request *r, mk_str authority)
{
    struct mk_headers *f = &r->fields;
    struct mk_header_field *at =
        f->n < MK_HEADERS_MAX ? mk_arena_alloc(r->arena, (f->n + 1) * sizeof *at) : NULL;
    if (!at)
        return false;
    if (f->n)
        memcpy(at, f->at, f->n * sizeof *at);
    at[f->n] = (struct mk_header_field){.name = MK_STR("Host"), .value = authority, .id = MK_HEADER_HOST};
    f->at = at;
    f->first[MK_HEADER_HOST] = (uint8_t)++f->n;
    return true;
}

/* The authority of an absolute target replaces Host (RFC 9112, section 3.2.2), so that programs and logs see
 * the selected host. */
static bool set_host_header(struct mk_request *r)
{
    mk_str authority = r->received.target.authority;
    unsigned first = r->fields.first[MK_HEADER_HOST];
    if (MK_LIKELY(!authority.p))
        return true;
    if (!first)
        return add_host_header(r, authority);
    r->fields.at[first - 1].value = authority;
    return true;
}

/* The host comes from the Host header, unless the target names one. */
static int parse_target(struct mk_request *r, const struct mk_request_head *head)
{
    if (MK_UNLIKELY(!head->path_len || head->method == MK_METHOD_CONNECT))
        return mk_request_target_init_checked(r, head->target, (mk_str){NULL, 0});
    return mk_request_target_init_plain(r, head->target, head->path_len);
}

static unsigned fill_request(struct mk_h1 *h, struct mk_request_head *head)
{
    struct mk_request *r = &h->d.x->request;
    struct mk_framing framing;
    r->version = head->minor ? 11 : 10;
    r->received.method = head->method;
    r->method_text = head->method_text;
    r->fields = head->fields;
    const char *line = head->method_text.p;
    mk_http_stream_note_request_line(&h->d,
                                     mk_str_of(line, (size_t)(head->target.p - line) + head->target.len));
    int bad = parse_target(r, head);
    int worse = mk_framing_parse(head, &h->d.conn->manager->last_host, &framing);
    if (!bad && !r->host.p)
        r->host = framing.host; /* for error responses as well: the host may have an error page */
    if (bad || worse)
        return (unsigned)(bad ? bad : worse);
    if (!set_host_header(r))
        return 503;
    if (MK_UNLIKELY(mk_headers_has(&r->fields, MK_HEADER_UPGRADE)))
        set_upgrade_protocol(r, &framing);
    h->persistence = decide_persistence(h->d.conn, &framing);
    return set_body_framing(h, &framing, head->len);
}

bool mk_h1_request_start(struct mk_conn *c, struct mk_request_head *head)
{
    struct mk_h1 *h = new_h1_request(c, tunnel_extra_memory(head));
    mk_str bytes = mk_str_first(mk_conn_input(c), head->len);
    if (!h)
        return reject_out_of_memory(c);
    attach_request(c, h);
    mk_conn_consume_input(c, head->len);
    c->seen = 0;
    if (!copy_head_to_arena(h->d.x, head, bytes))
        return mk_h1_request_reject(c, 503);
    unsigned status = fill_request(h, head);
    return status ? mk_h1_request_reject(c, status) : true;
}
