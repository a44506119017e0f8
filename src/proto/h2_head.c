/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of fields: what opens a stream, and what ends the content of one. */
#include "http/h2head.h"
#include "http/trailer.h"
#include "http/upgrade.h"
#include "proto/h2_flow.h"
#include "proto/h2_guard.h"
#include "proto/h2_input.h"
#include "proto/h2_say.h"
#include "web/trailers.h"

enum { REFUSED_COST = 2 };

static struct mk_service *service_of(const struct mk_h2 *h2)
{
    return h2->conn->service;
}

/* Every block must be decoded, whatever becomes of it: the table of the next one depends on it. False: the
 * connection has failed. */
static bool decode(struct mk_h2 *h2, mk_str block, mk_hpack_on_field *on_field, void *ctx)
{
    mk_err e = mk_hpack_decode(h2->decoder, block, on_field, ctx);
    if (e == -EBADMSG)
        mk_h2_say_failed(h2, MK_H2_COMPRESSION_ERROR, MK_H2_BAD_COMPRESSION);
    else if (e == -ENOMEM)
        mk_h2_say_failed(h2, MK_H2_INTERNAL_ERROR, MK_H2_NO_MEMORY);
    return !h2->failed;
}

static int ignore(void *ctx, mk_str name, mk_str value)
{
    (void)ctx;
    (void)name;
    (void)value;
    return -1;
}

/* ---- Requests ---- */

/* The fields move out of the room that all heads share. */
static bool keep_fields(struct mk_h2_stream *s, const struct mk_h2_head *head)
{
    struct mk_field *at = mk_arena_alloc(&s->x->arena, sizeof *at * head->fields.n);
    if (!at)
        return false;
    if (head->fields.n)
        memcpy(at, head->fields.at, sizeof *at * head->fields.n);
    s->x->request.fields = head->fields;
    s->x->request.fields.at = at;
    return true;
}

static int take_target(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    struct mk_request *r = &s->x->request;
    bool tunnel = head->protocol.p != NULL;
    bool connect = head->method == MK_METHOD_CONNECT && !tunnel;
    r->method = tunnel ? MK_METHOD_GET : head->method; /* whoever answers it is who answers an Upgrade */
    r->method_text = head->method_text;
    if (tunnel)
        r->tunnel =
            mk_str_eq_nocase(head->protocol, MK_UPGRADE_WEBSOCKET) ? MK_UPGRADE_WEBSOCKET : head->protocol;
    mk_service_leave_trail(service_of(s->h2), head->method_text, connect ? head->authority : head->path);
    int bad = mk_exchange_set_target(s->x, connect ? head->authority : head->path, head->host);
    return tunnel && ends ? 400 : bad; /* over before it began: success would say that it is open */
}

/* How much content there may be. 0 or a status. */
static unsigned take_content(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    const struct mk_limits *l = service_of(s->h2)->limits;
    uint64_t rest = l->request_max > head->size ? l->request_max - head->size : 0;
    s->content_max = l->request_max && rest < l->content_max ? rest : l->content_max;
    s->input_ended = ends;
    s->announced = ends ? 0 : head->has_length ? head->length : MK_REQUEST_LENGTH_UNKNOWN;
    s->x->request.length = s->x->request.tunnel.p ? 0 : s->announced;
    if (l->request_max && head->size > l->request_max)
        return 413;
    if (ends || !head->has_length)
        return 0;
    return head->length > s->content_max || head->length > INT64_MAX ? 413 : 0;
}

static unsigned take_request(struct mk_h2_stream *s, const struct mk_h2_head *head, bool ends)
{
    unsigned too_much = take_content(s, head, ends);
    if (!keep_fields(s, head))
        return 503;
    mk_str priority = mk_fields_get(&s->x->request.fields, MK_FIELD_PRIORITY);
    if (priority.p)
        s->priority = mk_priority_parse(priority);
    int bad = take_target(s, head, ends);
    s->expects_continue = head->expects_continue && !ends;
    return bad ? (unsigned)bad : too_much;
}

/* May the client open another one? */
static bool admit(struct mk_h2 *h2, uint32_t id, mk_str block)
{
    const struct mk_limits *l = service_of(h2)->limits;
    bool late = mk_h2_stream_is_late(h2, id);
    if (!late && h2->n_streams < l->h2.streams_max)
        return true;
    if (decode(h2, block, ignore, NULL) && !late && mk_h2_guard_spend(h2, REFUSED_COST, MK_H2_MANY_STREAMS))
        mk_h2_say_reset(h2, id, MK_H2_REFUSED_STREAM);
    return false;
}

static void open_stream(struct mk_h2 *h2, uint32_t id, mk_str block, bool ends)
{
    struct mk_service *service = service_of(h2);
    struct mk_h2_head head;
    h2->last_stream = id;
    if (!admit(h2, id, block))
        return;
    struct mk_h2_stream *s = mk_h2_stream_new(h2, id);
    if (!s) {
        if (decode(h2, block, ignore, NULL))
            mk_h2_say_reset(h2, id, MK_H2_REFUSED_STREAM);
        return;
    }
    mk_h2_head_init(&head, &s->x->arena, service->fields, &service->limits->head, false);
    if (!decode(h2, block, mk_h2_head_on_field, &head))
        return; /* it ends with all the others */
    int status = mk_h2_head_finish(&head);
    if (status < 0 || (ends && head.has_length && head.length)) {
        if (mk_h2_guard_spend(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
            mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_ENDING_REFUSED);
        return;
    }
    unsigned bad = take_request(s, &head, ends);
    if (status || bad)
        mk_h2_flow_refuse(s, status ? (unsigned)status : bad);
    else
        mk_h2_flow_run(s);
}

/* ---- Trailers ---- */

/* What may not stand there is left out (RFC 9110, section 6.5.1). */
static bool keep_trailers(struct mk_h2_stream *s, const struct mk_fields *fields)
{
    for (unsigned i = 0; i < fields->n; i++)
        if (mk_trailer_is_allowed(fields->at[i].name) &&
            !mk_trailers_add(&s->x->request.trailers, &s->x->arena, fields->at[i].name, fields->at[i].value))
            return false;
    return true;
}

static void take_trailers(struct mk_h2_stream *s, mk_str block, bool ends)
{
    struct mk_service *service = service_of(s->h2);
    struct mk_h2 *h2 = s->h2;
    struct mk_h2_head head;
    mk_h2_head_init(&head, &s->x->arena, service->fields, &service->limits->head, true);
    if (!decode(h2, block, mk_h2_head_on_field, &head))
        return;
    if (!ends || mk_h2_head_finish(&head)) {
        if (mk_h2_guard_spend(h2, MK_H2_RESET_COST, MK_H2_MANY_RESETS))
            mk_h2_stream_reset(s, MK_H2_PROTOCOL_ERROR, MK_ENDING_REFUSED);
        return;
    }
    if (!keep_trailers(s, &head.fields))
        mk_h2_stream_reset(s, MK_H2_INTERNAL_ERROR, MK_ENDING_ABORTED);
    else
        (void)mk_h2_stream_take(s, MK_STR(""), 0, true);
}

void mk_h2_head_take(struct mk_h2 *h2, uint32_t id, mk_str block, bool ends)
{
    struct mk_h2_stream *s = mk_h2_stream_find(h2, id);
    if (s && !s->input_ended)
        take_trailers(s, block, ends);
    else if (!s && id > h2->last_stream)
        open_stream(h2, id, block, ends);
    else if (!mk_h2_stream_is_late(h2, id) && !mk_h2_stream_was_reset(h2, id))
        mk_h2_say_failed(h2, MK_H2_STREAM_CLOSED, MK_H2_STREAM_ENDED);
    else
        (void)decode(h2, block, ignore, NULL);
}
