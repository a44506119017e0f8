/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2_output.h"

#include "http/status.h"
#include "proto/h2_guard.h"
#include "proto/h2_say.h"
#include "web/trailers.h"

enum {
    ROOM_MIN = 1024 + MK_H2_FRAME_HEAD, /* of the scratch: a frame is not made smaller for lack of it */
    AT_ONCE_MAX = 16 * 1024,
    TURN_MAX = 8 * 1024 * 1024, /* bytes for one connection before the others have their turn */
    TINY = 64,                  /* bytes of content that are not worth their frame */
};

enum progress {
    COMPLETE,     /* the stream may be gone */
    MORE,         /* a frame was written, others follow */
    WAITS_WINDOW, /* the stream's own */
    WAITS_CLIENT, /* the connection's window */
    WAITS_ROOM,   /* in the scratch */
    WAITS_SOMEBODY,
};

/* ---- Heads ---- */

/* What a field is that not every response has, by its length: most need no further look. */
static bool may_be_odd(size_t len)
{
    return len == 7 || len == 10 || len == 16 || len == 17;
}

/* Whoever adds fields without having them checked has HTTP/1 in mind (RFC 9113, section 8.2.2), where white
 * space around values means nothing, too. */
static bool is_of_connection(mk_str name)
{
    return mk_str_eq_nocase(name, MK_STR("Connection")) || mk_str_eq_nocase(name, MK_STR("Keep-Alive")) ||
           mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")) || mk_str_eq_nocase(name, MK_STR("Upgrade")) ||
           mk_str_eq_nocase(name, MK_STR("Proxy-Connection"));
}

static void add_fields(struct mk_buf *out, const struct mk_field *fields, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        mk_str name = fields[i].name, value = mk_str_trim(fields[i].value);
        if (may_be_odd(name.len) && is_of_connection(name))
            continue;
        if (name.len == 10 && mk_str_eq_nocase(name, MK_STR("Set-Cookie")))
            mk_hpack_emit_secret(out, name, value);
        else
            mk_hpack_emit(out, name, value);
    }
}

static void add_head(struct mk_h2_stream *s, struct mk_buf *out)
{
    struct mk_service *service = s->h2->conn->service;
    const struct mk_response *r = &s->x->response;
    mk_str stamp = mk_stamp_packed_at(&service->stamp, service->loop->now_unix);
    if (MK_LIKELY(r->status == 200 && r->n_blocks == 1 && r->blocks[0]->packed_ready.p)) {
        mk_buf_add(out, r->blocks[0]->packed_ready);
        mk_buf_add(out, stamp);
        add_fields(out, r->fields, r->n_fields); /* what plugins added */
        return;
    }
    mk_hpack_emit_status(out, r->status);
    mk_buf_add(out, stamp);
    for (unsigned i = 0; i < r->n_blocks; i++)
        add_fields(out, r->blocks[i]->fields, r->blocks[i]->n);
    add_fields(out, r->fields, r->n_fields);
    if (mk_status_has_content(r->status) && r->content.length != MK_CONTENT_UNKNOWN)
        mk_hpack_emit_num(out, MK_STR("Content-Length"), r->content.length);
}

static bool try_head(struct mk_h2_stream *s, struct mk_buf *out)
{
    size_t from = out->len;
    mk_h2_say_open_block(s->h2);
    add_head(s, out);
    if (!mk_h2_say_close_block(s->h2, from, s->id, s->head_only ? MK_H2_END_STREAM : 0))
        return false;
    s->head_from = from;
    s->head_to = out->len;
    s->head_flush = s->h2->n_flushes;
    return true;
}

/* A head larger than the scratch, or content that failed before any of it was sent: the client gets an honest
 * answer. */
MK_COLD static void write_honest_head(struct mk_h2_stream *s)
{
    struct mk_service *service = s->h2->conn->service;
    struct mk_buf *out = mk_h2_say_room(s->h2, ROOM_MIN);
    size_t from = out->len;
    s->x->response.status = 500;
    s->complete = s->head_sent = s->head_only = true;
    s->sent = 0;
    mk_h2_say_open_block(s->h2);
    mk_hpack_emit_status(out, 500);
    mk_buf_add(out, mk_stamp_packed_at(&service->stamp, service->loop->now_unix));
    mk_hpack_emit_num(out, MK_STR("Content-Length"), 0);
    (void)mk_h2_say_close_block(s->h2, from, s->id, MK_H2_END_STREAM);
}

/* False: there is no room now. */
static bool write_head(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_out(s->h2);
    const struct mk_response *r = &s->x->response;
    bool has_content = s->x->request.method != MK_METHOD_HEAD && mk_status_has_content(r->status);
    s->head_only = !has_content || r->content.length == 0;
    s->expects_continue = false;
    if (!try_head(s, out)) {
        if (out->len)
            return false;
        s->x->response.sealed = true;
        write_honest_head(s);
        return true;
    }
    s->x->response.sealed = true;
    s->head_sent = true;
    s->to_send = r->content.length;
    s->complete = s->head_only;
    return true;
}

/* ---- Content ---- */

/* The content cannot be completed. */
MK_COLD static enum progress fail(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_out(s->h2);
    s->ending = MK_ENDING_ABORTED;
    if (s->head_flush == s->h2->n_flushes && s->head_to == out->len) {
        mk_h2_say_retract_block(s->h2, s->head_from);
        s->h2->send_window += (int64_t)s->sent;
        s->tunnel = false; /* it was none yet */
        write_honest_head(s);
        return COMPLETE;
    }
    mk_h2_stream_reset(s, MK_H2_INTERNAL_ERROR, MK_ENDING_ABORTED);
    return COMPLETE;
}

static void on_warm(void *data)
{
    struct mk_h2_stream *s = data;
    s->coldread = NULL;
    s->go = true;
    mk_h2_stream_make_ready(s);
    mk_conn_resume(s->h2->conn);
}

/* Whoever makes the content has nothing yet: is it a disk that is in the way? */
static enum progress wait_for_content(struct mk_h2_stream *s)
{
    bool in_the_way;
    if (s->go) { /* a filter that gives others their turn, and has itself resumed */
        mk_conn_resume(s->h2->conn);
        return WAITS_SOMEBODY;
    }
    s->coldread = mk_coldread_missed(s->h2->conn->service, &s->x->response.content, &in_the_way, on_warm, s);
    if (in_the_way && !s->coldread) {
        s->go = true;
        return MORE;
    }
    return WAITS_SOMEBODY;
}

/* How much content the next frame may have; 0: none, *why says what is waited for. */
static size_t frame_room(struct mk_h2_stream *s, enum progress *why)
{
    const struct mk_buf *out = mk_h2_out(s->h2);
    int64_t window = s->send_window < s->h2->send_window ? s->send_window : s->h2->send_window;
    size_t room = out->cap - out->len;
    *why = s->send_window <= 0 ? WAITS_WINDOW : s->h2->send_window <= 0 ? WAITS_CLIENT : WAITS_ROOM;
    if (window <= 0 || room < ROOM_MIN)
        return 0;
    size_t most = mk_min(room - MK_H2_FRAME_HEAD, (size_t)MK_H2_FRAME_MAX);
    if (s->to_send < most)
        most = (size_t)s->to_send;
    if ((uint64_t)window >= most)
        return most;
    /* A client that opens its window by a few bytes at a time makes us work for nothing. */
    *why = WAITS_CLIENT;
    if (window < TINY && !mk_h2_guard_spend(s->h2, 1, MK_H2_TINY_WINDOWS))
        return 0;
    return (size_t)window;
}

static void write_data(struct mk_h2_stream *s, size_t n, bool ends)
{
    struct mk_buf *out = mk_h2_out(s->h2);
    bool is_next = s->head_to == out->len;
    mk_h2_frame_write_head(out->p + out->len, (uint32_t)n, MK_H2_DATA, ends ? MK_H2_END_STREAM : 0, s->id);
    out->len += MK_H2_FRAME_HEAD + n;
    if (is_next)
        s->head_to = out->len;
    s->send_window -= (int64_t)n;
    s->h2->send_window -= (int64_t)n;
    s->sent += n;
    s->progress += n;
    if (s->to_send != MK_CONTENT_UNKNOWN)
        s->to_send -= n;
    s->complete = ends;
}

static bool has_trailers(const struct mk_h2_stream *s)
{
    return s->x->response.trailers && mk_request_accepts_trailers(&s->x->request);
}

static enum progress write_trailers(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_out(s->h2);
    const struct mk_trailers *t = s->x->response.trailers;
    size_t from = out->len;
    mk_h2_say_open_block(s->h2);
    add_fields(out, t->at, t->n);
    s->complete = mk_h2_say_close_block(s->h2, from, s->id, MK_H2_END_STREAM);
    if (s->complete)
        return COMPLETE;
    return WAITS_ROOM;
}

/* The source said that this is the end. Does it agree with what the head said? */
static enum progress end_of_source(struct mk_h2_stream *s)
{
    s->spent = true;
    if (s->to_send != MK_CONTENT_UNKNOWN && s->to_send > 0)
        return fail(s);
    if (has_trailers(s))
        return write_trailers(s);
    write_data(s, 0, true);
    return COMPLETE;
}

static enum progress add_data(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_out(s->h2);
    enum progress why;
    if (s->spent || s->to_send == 0)
        return end_of_source(s);
    size_t most = frame_room(s, &why);
    if (!most)
        return why;
    if (s->coldread || !s->go)
        return WAITS_SOMEBODY;
    s->go = s->wants_input = false;
    ssize_t n = mk_content_pull(&s->x->response.content, out->p + out->len + MK_H2_FRAME_HEAD, most);
    if (n == 0)
        return end_of_source(s);
    if (n == -EAGAIN)
        return wait_for_content(s);
    if (n < 0 || (size_t)n > most)
        return fail(s);
    s->go = true;
    write_data(s, (size_t)n, (uint64_t)n == s->to_send && !has_trailers(s));
    return s->complete ? COMPLETE : MORE;
}

/* ---- One stream ---- */

/* All of the response is in the scratch. */
static void conclude(struct mk_h2_stream *s)
{
    bool little = s->announced == MK_REQUEST_LENGTH_UNKNOWN || s->announced - s->received <= MK_H2_DRAIN_MAX;
    if (s->tunnel) {
        mk_h2_stream_wake(s);
        mk_conn_resume(s->h2->conn);
    } else if (s->input_ended || s->h2->halved) {
        mk_h2_stream_end(s, MK_ENDING_DONE);
    } else if (little) {
        mk_h2_stream_drain(s);
    } else { /* RFC 9113, section 8.1: what the client still has need not be sent */
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_ENDING_DONE);
    }
}

/* Its head, or a frame of its content. */
static enum progress step(struct mk_h2_stream *s)
{
    if (!s->head_sent && !write_head(s))
        return WAITS_ROOM;
    return s->complete ? COMPLETE : add_data(s);
}

bool mk_h2_output_at_once(struct mk_h2_stream *s)
{
    struct mk_h2 *h2 = s->h2;
    uint32_t id = s->id;
    const struct mk_content *content = &s->x->response.content;
    bool in_the_way = h2->ready_mask || !mk_outq_empty(&h2->conn->out) || h2->lost || h2->failed;
    if (in_the_way || content->source || content->length > AT_ONCE_MAX)
        return false;
    enum progress p = step(s);
    s = p == COMPLETE ? mk_h2_stream_find(h2, id) : NULL; /* it may be gone */
    if (s)
        conclude(s);
    return p == COMPLETE;
}

/* ---- All of them ---- */

/* The most urgent one that can go on; NULL: none can. While the connection's window is closed, heads still
 * go. */
static struct mk_h2_stream *choose(struct mk_h2 *h2)
{
    for (unsigned u = 0; u < MK_URGENCIES; u++) {
        if (!(h2->ready_mask >> u & 1))
            continue;
        if (mk_list_empty(&h2->ready[u]))
            h2->ready_mask &= ~(1u << u);
        MK_LIST_EACH_SAFE (at, &h2->ready[u]) {
            struct mk_h2_stream *s = MK_LIST_ENTRY(at, struct mk_h2_stream, turn);
            if (h2->send_window > 0 || !s->head_sent)
                return s;
        }
    }
    return NULL;
}

/* Takes note of what became of a step. False: nothing more can be done now. */
static bool settle(struct mk_h2_stream *s, enum progress p)
{
    struct mk_h2 *h2 = s->h2;
    switch (p) {
    case COMPLETE:
        conclude(s);
        break;
    case MORE:
        if (s->tunnel)
            mk_h2_stream_set_clock(s, MK_CLOCK_TUNNEL);
        else if (s->clock == MK_CLOCK_HANDLER) /* how fast the client is, is still looked at */
            mk_h2_stream_set_clock(s, MK_CLOCK_NONE);
        if (s->priority.incremental) { /* pieces are of use: others may have theirs in between */
            mk_list_remove(&s->turn);
            mk_h2_stream_make_ready(s);
        }
        break;
    case WAITS_WINDOW:
        mk_list_remove(&s->turn);
        if (!s->tunnel)
            mk_h2_stream_set_clock(s, MK_CLOCK_RATE);
        break;
    case WAITS_SOMEBODY:
        mk_list_remove(&s->turn);
        if (s->go && !s->coldread) /* it has resumed itself: others first, however urgent it is */
            mk_h2_stream_wake(s);
        else
            mk_h2_stream_wait(s);
        break;
    case WAITS_CLIENT:
        break;
    case WAITS_ROOM:
        return mk_h2_say_flush(h2) && mk_outq_empty(&h2->conn->out);
    }
    return true;
}

void mk_h2_output_send(struct mk_h2 *h2)
{
    uint64_t until = h2->conn->service->counters->sent + TURN_MAX;
    struct mk_h2_stream *s;
    if (!h2->ready_mask || !mk_outq_empty(&h2->conn->out))
        return;
    while (!h2->lost && !h2->failed && (s = choose(h2)) != NULL) {
        uint32_t id = s->id;
        enum progress p = step(s);
        s = p == COMPLETE ? mk_h2_stream_find(h2, id) : s; /* it may be gone */
        if (s && !settle(s, p))
            return;
        if (h2->conn->service->counters->sent >= until) {
            mk_conn_resume(h2->conn);
            return;
        }
    }
}

bool mk_h2_output_is_blocked(const struct mk_h2 *h2)
{
    if (!mk_outq_empty(&h2->conn->out))
        return true;
    for (unsigned u = 0; u < MK_URGENCIES; u++)
        if (!mk_list_empty(&h2->ready[u]))
            return h2->send_window <= 0;
    return false;
}
