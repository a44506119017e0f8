/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_request.h"

#include "http/header.h"
#include "http/upgrade.h"
#include "http2/h2_abuse.h"
#include "http2/h2_head.h"
#include "http2/h2_output.h"
#include "http2/h2_stream.h"
#include "http2/h2_tunnel.h"
#include "http2/h2_write.h"
#include "web/request_target.h"
#include "web/trailers.h"

enum { REFUSED_COST = 2 };

static struct mk_conn_manager *manager_of(const struct mk_h2 *h2)
{
    return h2->conn->manager;
}

/* Every block must be decoded, even if it is discarded: it changes the table used by later blocks. False: the
 * connection has failed. */
static bool decode_block(struct mk_h2 *h2, mk_str block, mk_hpack_on_header *on_field, void *ctx)
{
    mk_err e = mk_hpack_decode(h2->decoder, block, on_field, ctx);
    if (e == -EBADMSG)
        mk_h2_write_goaway_error(h2, MK_H2_COMPRESSION_ERROR, MK_H2_BAD_COMPRESSION);
    else if (e == -ENOMEM)
        mk_h2_write_goaway_error(h2, MK_H2_INTERNAL_ERROR, MK_H2_NO_MEMORY);
    return mk_h2_state_is_alive(h2);
}

static int ignore_header(void *ctx, mk_str name, mk_str value)
{
    (void)ctx;
    (void)name;
    (void)value;
    return -1;
}

/* ---- Priority ---- */

/* Returns the next list member, without its parameters ("u=1;x=2"). */
static mk_str next_list_member(mk_str *list)
{
    size_t n = mk_str_find(*list, ',');
    bool last = n >= list->len;
    mk_str member = mk_str_first(*list, n);
    *list = last ? mk_str_skip(*list, list->len) : mk_str_skip(*list, n + 1);
    n = mk_str_find(member, ';');
    return mk_str_trim(mk_str_first(member, n));
}

struct mk_h2_priority mk_h2_priority_parse(mk_str value)
{
    struct mk_h2_priority p = {.urgency = MK_URGENCY_USUAL};
    while (value.len) {
        mk_str m = next_list_member(&value);
        bool is_urgency = m.len == 3 && m.p[0] == 'u' && m.p[1] == '=';
        if (is_urgency && m.p[2] >= '0' && m.p[2] < '0' + MK_URGENCIES)
            p.urgency = (uint8_t)(m.p[2] - '0');
        else if (mk_str_eq(m, MK_STR("i")) || mk_str_eq(m, MK_STR("i=?1")))
            p.incremental = true;
        else if (mk_str_eq(m, MK_STR("i=?0")))
            p.incremental = false;
    }
    return p;
}

/* ---- Dispatch ---- */

/* Called when dispatch has produced a response. */
static void start_response(struct mk_h2_stream *s)
{
    mk_http_stream_allow_call(&s->d);
    if (mk_http_stream_is_tunnel(&s->d)) {
        mk_h2_tunnel_begin(s);
        return;
    }
    if (s->timeout)
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_NONE);
    if (MK_UNLIKELY(mk_http_stream_needs_100_continue(&s->d)))
        mk_h2_stream_send_continue(s);
    if (!mk_h2_output_try_send_now(s))
        mk_h2_stream_queue_output(s);
}

/* Responds with an error immediately. */
static void respond_with_error(struct mk_h2_stream *s, unsigned status)
{
    if (!s->d.outcome)
        s->d.outcome = status == 408 ? MK_OUTCOME_TIMEOUT : MK_OUTCOME_REJECTED;
    mk_list_remove(&s->queue_link);
    mk_h2_stream_discard_input(s);
    mk_dispatch_error(s->d.x, status);
    start_response(s);
}

/* Handles the expired timeout in s->due. */
MK_COLD static void handle_timeout(struct mk_h2_stream *s)
{
    bool by_handler = s->due == MK_TIMEOUT_HANDLER;
    s->due = MK_TIMEOUT_NONE;
    s->d.outcome = MK_OUTCOME_TIMEOUT;
    if (mk_http_stream_response_written(&s->d))
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
    else if (s->d.x->response.sealed || mk_http_stream_is_tunnel(&s->d))
        mk_h2_stream_reset(s, by_handler ? MK_H2_INTERNAL_ERROR : MK_H2_CANCEL, MK_OUTCOME_TIMEOUT);
    else
        respond_with_error(s, by_handler ? 504 : 408);
}

/* Calls the handler, unless it is still waiting for something. */
static void call_handler(struct mk_h2_stream *s)
{
    if (s->d.awaits != MK_AWAITS_NOTHING) {
        mk_h2_stream_set_wait_timeout(s);
        return;
    }
    mk_http_stream_begin_call(&s->d);
    if (s->timeout == MK_TIMEOUT_HANDLER)
        mk_h2_stream_stop_timeout(s); /* the next wait gets the full timeout */
    if (mk_dispatch_run(s->d.x))
        start_response(s);
    else if (s->d.awaits != MK_AWAITS_NOTHING)
        mk_h2_stream_set_wait_timeout(s);
}

void mk_h2_request_run(struct mk_h2_stream *s)
{
    if (MK_UNLIKELY(s->due))
        handle_timeout(s);
    else if (MK_UNLIKELY(mk_http_stream_is_tunnel(&s->d)))
        mk_h2_tunnel_run(s);
    else if (s->d.x->step == MK_DISPATCH_READY) /* the body source has yielded to other streams */
        mk_h2_stream_queue_output(s);
    else
        call_handler(s);
}

/* ---- Requests ---- */

/* Copies the headers to the arena: all requests are parsed into the same buffer. */
static bool store_headers(struct mk_h2_stream *s, const struct mk_h2_head *head)
{
    struct mk_header_field *at = mk_arena_alloc(&s->d.x->arena, sizeof *at * head->fields.n);
    if (!at)
        return false;
    if (head->fields.n)
        memcpy(at, head->fields.at, sizeof *at * head->fields.n);
    s->d.x->request.fields = head->fields;
    s->d.x->request.fields.at = at;
    return true;
}

static int set_target(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    struct mk_request *r = &s->d.x->request;
    bool tunnel = head->protocol.p != NULL;
    bool connect = head->method == MK_METHOD_CONNECT && !tunnel;
    r->received.method =
        tunnel ? MK_METHOD_GET
               : head->method; /* GET, as for an Upgrade over HTTP/1, so that the same handlers serve the
                                  request */
    r->method_text = head->method_text;
    if (tunnel)
        r->tunnel =
            mk_str_eq_nocase(head->protocol, MK_UPGRADE_WEBSOCKET) ? MK_UPGRADE_WEBSOCKET : head->protocol;
    mk_http_stream_note_request(&s->d, head->method_text, connect ? head->authority : head->path);
    int bad = mk_request_target_init(&s->d.x->request, connect ? head->authority : head->path, head->host);
    return tunnel && ends ? 400 : bad; /* the client has already ended the stream, so no tunnel can be
                                        * opened */
}

static void set_body_length(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    s->announced = ends ? 0 : head->has_length ? head->length : MK_REQUEST_LENGTH_UNKNOWN;
    if (ends)
        mk_http_stream_close_remote(&s->d);
    else if (head->expects_continue)
        mk_http_stream_set_input_state(&s->d, MK_INPUT_AWAITS_CONTINUE);
    s->d.x->request.length =
        head->protocol.p ? 0 : s->announced; /* data that follows belongs to the tunnel */
}

static unsigned fill_request(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    set_body_length(s, head, ends);
    if (!store_headers(s, head))
        return 503;
    mk_str priority = mk_headers_get(&s->d.x->request.fields, MK_HEADER_PRIORITY);
    if (priority.p)
        s->priority = mk_h2_priority_parse(priority);
    int bad = set_target(s, head, ends);
    unsigned too_much =
        ends ? mk_http_stream_check_head_size(&s->d, head->size)
             : mk_http_stream_check_body_size(&s->d, head->size, head->has_length ? head->length : 0);
    return bad ? (unsigned)bad : too_much;
}

/* May the client open another stream? Otherwise rejects it. */
static bool admit_stream(struct mk_h2 *h2, uint32_t id, mk_str block)
{
    const struct mk_conn_manager_limits *l = manager_of(h2)->limits;
    bool late = mk_h2_stream_is_late(h2, id);
    if (!late && h2->n_streams < l->h2.streams_max)
        return true;
    if (decode_block(h2, block, ignore_header, NULL) && !late &&
        mk_h2_abuse_charge(h2, REFUSED_COST, MK_H2_MANY_STREAMS))
        mk_h2_write_rst_stream(h2, id, MK_H2_REFUSED_STREAM);
    return false;
}

/* Has the beginning of the body arrived together with the head? The handler then runs after the input is parsed, and
 * finds the body already buffered. */
static bool is_followed_by_data(const struct mk_h2_stream *s)
{
    mk_str in = mk_conn_input(s->h2->conn); /* starts with the frame that ends the head */
    in = mk_str_skip(in, MK_H2_FRAME_HEAD + mk_h2_frame_parse(in).length);
    if (in.len < MK_H2_FRAME_HEAD)
        return false;
    struct mk_h2_frame next = mk_h2_frame_parse(in);
    return next.type == MK_H2_DATA && next.stream == s->id && next.length <= s->receive_window &&
           next.length <= in.len - MK_H2_FRAME_HEAD;
}

static void open_stream(struct mk_h2 *h2, uint32_t id, mk_str block, bool ends)
{
    struct mk_conn_manager *manager = manager_of(h2);
    struct mk_h2_head head;
    h2->last_stream = id;
    if (!admit_stream(h2, id, block))
        return;
    struct mk_h2_stream *s = mk_h2_stream_new(h2, id);
    if (!s) {
        if (decode_block(h2, block, ignore_header, NULL))
            mk_h2_write_rst_stream(h2, id, MK_H2_REFUSED_STREAM);
        return;
    }
    mk_h2_head_init(&head, &s->d.x->arena, manager->fields, &manager->limits->head, false);
    if (!decode_block(h2, block, mk_h2_head_on_header, &head))
        return; /* the connection has failed, and all streams with it */
    int status = mk_h2_head_finish(&head);
    if (status < 0 || (ends && head.has_length && head.length)) {
        if (mk_h2_abuse_charge(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
            mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_OUTCOME_REJECTED);
        return;
    }
    unsigned bad = fill_request(s, &head, ends);
    if (status || bad)
        respond_with_error(s, status ? (unsigned)status : bad);
    else if (!ends && is_followed_by_data(s))
        mk_h2_stream_wake(s);
    else
        mk_h2_request_run(s);
}

/* ---- Trailers ---- */

/* Omits headers that are not allowed in trailers (RFC 9110, section 6.5.1). */
static bool store_trailers(struct mk_h2_stream *s, const struct mk_headers *fields)
{
    for (unsigned i = 0; i < fields->n; i++)
        if (mk_trailer_is_allowed(fields->at[i].name) &&
            !mk_trailers_add(&s->d.x->request.trailers, &s->d.x->arena, fields->at[i].name,
                             fields->at[i].value))
            return false;
    return true;
}

static void end_with_trailers(struct mk_h2_stream *s, mk_str block, bool ends)
{
    struct mk_conn_manager *manager = manager_of(s->h2);
    struct mk_h2 *h2 = s->h2;
    struct mk_h2_head head;
    mk_h2_head_init(&head, &s->d.x->arena, manager->fields, &manager->limits->head, true);
    if (!decode_block(h2, block, mk_h2_head_on_header, &head))
        return;
    if (!ends || mk_h2_head_finish(&head)) {
        if (mk_h2_abuse_charge(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
            mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_OUTCOME_REJECTED);
        return;
    }
    if (!store_trailers(s, &head.fields))
        mk_h2_stream_reset(s, MK_H2_INTERNAL_ERROR, MK_OUTCOME_FAILED);
    else
        mk_h2_stream_receive(s, MK_STR(""), true);
}

void mk_h2_request_receive_block(struct mk_h2 *h2, uint32_t id, mk_str block, bool ends)
{
    struct mk_h2_stream *s = mk_h2_stream_find(h2, id);
    if (s && !mk_http_stream_request_received(&s->d))
        end_with_trailers(s, block, ends);
    else if (!s && id > h2->last_stream)
        open_stream(h2, id, block, ends);
    else if (!mk_h2_stream_is_late(h2, id) && !mk_h2_stream_was_reset(h2, id))
        mk_h2_write_goaway_error(h2, MK_H2_STREAM_CLOSED, MK_H2_STREAM_ENDED);
    else
        (void)decode_block(h2, block, ignore_header, NULL);
}
