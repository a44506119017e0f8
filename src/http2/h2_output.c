/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_output.h"

#include "http/status.h"
#include "http2/h2_abuse.h"
#include "http2/h2_stream.h"
#include "http2/h2_write.h"
#include "web/trailers.h"

enum {
    ROOM_MIN =
        1024 +
        MK_H2_FRAME_HEAD, /* minimum space in the output buffer: with less space, the buffer is flushed before
                           * a frame is written */
    AT_ONCE_MAX = 16 * 1024,
    ITERATION_BYTES_MAX = 8 * 1024 * 1024, /* maximum bytes sent on a connection before others are served */
    TINY = 64,                             /* smaller DATA frames are charged to the abuse budget */
    SOURCE_ROOM = 16 * 1024, /* space required for a head and the first data of its body source: while
                                 * both are in the buffer, an error response can still replace them */
};

enum progress {
    COMPLETE,     /* the response is complete, or the stream is closed */
    MORE,         /* a frame was written, more follow */
    WAITS_WINDOW, /* waits for the window of the stream */
    WAITS_CLIENT, /* waits for the window of the connection */
    WAITS_ROOM,   /* waits for space in the output buffer */
    WAITS_CONTENT,
};

/* ---- Heads ---- */

static void encode_headers(struct mk_buf *out, const struct mk_header_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mk_h2_write_header(out, fields[i].name, fields[i].value);
}

static void encode_head(struct mk_h2_stream *s, struct mk_buf *out)
{
    struct mk_conn_manager *manager = s->h2->conn->manager;
    const struct mk_response *r = &s->d.x->response;
    mk_str stamp =
        mk_common_headers_without_own(mk_common_headers_hpack_at(&manager->stamp, manager->loop->now_unix),
                                      manager->stamp.packed_server_len, r->own);
    if (MK_LIKELY(r->status == 200 && r->n_blocks == 1 && r->blocks[0]->cached_head_h2.p)) {
        mk_buf_add(out, r->blocks[0]->cached_head_h2);
        mk_buf_add(out, stamp);
        encode_headers(out, r->fields, r->n_fields); /* added by plugins */
        return;
    }
    mk_hpack_encode_status(out, r->status);
    mk_buf_add(out, stamp);
    for (unsigned i = 0; i < r->n_blocks; i++)
        encode_headers(out, r->blocks[i]->fields, r->blocks[i]->n);
    encode_headers(out, r->fields, r->n_fields);
    if (mk_status_has_content(r->status) && r->content.length != MK_RESPONSE_BODY_UNKNOWN)
        mk_hpack_encode_num(out, MK_STR("Content-Length"), r->content.length);
}

static bool try_write_head(struct mk_h2_stream *s, struct mk_buf *out, bool ends)
{
    size_t from = out->len;
    mk_h2_write_begin_block(s->h2);
    encode_head(s, out);
    if (!mk_h2_write_end_block(s->h2, from, s->id, ends ? MK_H2_END_STREAM : 0))
        return false;
    s->head_from = from;
    s->head_to = out->len;
    s->head_flush = s->h2->n_flushes;
    return true;
}

/* Writes the response head. False: the output buffer has no space. */
static bool write_head(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_write_buffer(s->h2);
    struct mk_response *r = &s->d.x->response;
    bool ends = !mk_http_stream_response_has_body(&s->d) || r->content.length == 0;
    if (r->content.source && out->len > out->cap - SOURCE_ROOM)
        return false;
    if (MK_UNLIKELY(r->own & MK_RESPONSE_OWN_TRAILER))
        mk_trailers_announce(&s->d.x->request, r);
    bool written = try_write_head(s, out, ends);
    if (!written && out->len)
        return false;
    if (!written) { /* the head is too large for an empty buffer: an error response replaces it */
        mk_http_stream_replace_with_error(&s->d);
        return write_head(s);
    }
    r->sealed = true;
    mk_http_stream_set_response_state(&s->d, MK_RESPONSE_HEAD_SENT);
    s->d.to_send = r->content.length;
    if (ends)
        mk_http_stream_close_local(&s->d);
    return true;
}

/* ---- Body ---- */

/* Handles a body that cannot be completed: an error replaces the response if the output buffer still ends
 * with all of it; otherwise the stream is reset. */
MK_COLD static enum progress fail_response(struct mk_h2_stream *s)
{
    const struct mk_buf *out = mk_h2_write_buffer(s->h2);
    if (s->head_flush != s->h2->n_flushes || s->head_to != out->len) {
        enum mk_h2_error code = (enum mk_h2_error)s->d.x->response.reset_code;
        mk_h2_stream_reset(s, code ? code : MK_H2_INTERNAL_ERROR, mk_http_stream_fail_response(&s->d));
        return COMPLETE;
    }
    mk_h2_write_remove_block(s->h2, s->head_from);
    s->h2->send_window += (int64_t)s->d.sent;
    s->send_window += (int64_t)s->d.sent;
    mk_http_stream_replace_with_error(&s->d);
    return MORE;
}

/* Returns the maximum body bytes for the next frame. 0: the stream has to wait; *error is the reason. */
static size_t data_frame_size_max(struct mk_h2_stream *s, enum progress *error)
{
    const struct mk_buf *out = mk_h2_write_buffer(s->h2);
    int64_t window = s->send_window < s->h2->send_window ? s->send_window : s->h2->send_window;
    size_t space = out->cap - out->len;
    *error = s->send_window <= 0 ? WAITS_WINDOW : s->h2->send_window <= 0 ? WAITS_CLIENT : WAITS_ROOM;
    if (window <= 0 || space < ROOM_MIN)
        return 0;
    size_t most = mk_min(space - MK_H2_FRAME_HEAD, (size_t)MK_H2_FRAME_MAX);
    if (s->d.to_send < most)
        most = (size_t)s->d.to_send;
    if ((uint64_t)window >= most)
        return most;
    /* A client that opens its window a few bytes at a time causes much work for little data. */
    *error = WAITS_CLIENT;
    if (window < TINY && !mk_h2_abuse_charge(s->h2, 1, MK_H2_TINY_WINDOWS))
        return 0;
    return (size_t)window;
}

static void write_data_frame(struct mk_h2_stream *s, size_t n, bool ends)
{
    struct mk_buf *out = mk_h2_write_buffer(s->h2);
    bool is_next = s->head_to == out->len;
    mk_h2_frame_write_head(out->p + out->len, (uint32_t)n, MK_H2_DATA, ends ? MK_H2_END_STREAM : 0, s->id);
    out->len += MK_H2_FRAME_HEAD + n;
    if (is_next)
        s->head_to = out->len;
    s->send_window -= (int64_t)n;
    s->h2->send_window -= (int64_t)n;
    s->progress += n;
    mk_http_stream_count_body_sent(&s->d, n);
    if (ends)
        mk_http_stream_close_local(&s->d);
}

static bool has_trailers(const struct mk_h2_stream *s)
{
    return s->d.x->response.trailers && mk_request_accepts_trailers(&s->d.x->request);
}

static enum progress write_trailers(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_write_buffer(s->h2);
    const struct mk_trailers *t = s->d.x->response.trailers;
    size_t from = out->len;
    mk_h2_write_begin_block(s->h2);
    encode_headers(out, t->at, t->n);
    if (!mk_h2_write_end_block(s->h2, from, s->id, MK_H2_END_STREAM))
        return WAITS_ROOM;
    mk_http_stream_close_local(&s->d);
    return COMPLETE;
}

static enum progress end_body(struct mk_h2_stream *s)
{
    if (s->d.reply.current != MK_RESPONSE_BODY_ENDED)
        mk_http_stream_set_response_state(&s->d, MK_RESPONSE_BODY_ENDED);
    if (has_trailers(s))
        return write_trailers(s);
    write_data_frame(s, 0, true);
    return COMPLETE;
}

static enum progress write_body_frame(struct mk_h2_stream *s)
{
    struct mk_buf *out = mk_h2_write_buffer(s->h2);
    enum progress error;
    size_t n = 0;
    if (s->d.reply.current == MK_RESPONSE_BODY_ENDED || s->d.to_send == 0)
        return end_body(s);
    size_t most = data_frame_size_max(s, &error);
    if (!most)
        return error;
    switch (mk_http_stream_pull_body(&s->d, out->p + out->len + MK_H2_FRAME_HEAD, most, &n)) {
    case MK_PULL_DATA:
        break;
    case MK_PULL_END:
        return end_body(s);
    case MK_PULL_WAITS:
        return WAITS_CONTENT;
    case MK_PULL_AGAIN:
        return MORE;
    case MK_PULL_FAILED:
        return fail_response(s);
    }
    write_data_frame(s, n, n == s->d.to_send && !has_trailers(s));
    return mk_http_stream_response_written(&s->d) ? COMPLETE : MORE;
}

/* ---- One stream ---- */

/* Called when the whole response is in the output buffer. */
static void finish_response(struct mk_h2_stream *s)
{
    bool little =
        s->announced == MK_REQUEST_LENGTH_UNKNOWN || s->announced - s->d.received <= MK_H2_DRAIN_MAX;
    if (mk_h2_stream_is_closed(s)) {
        return;
    } else if (mk_http_stream_is_tunnel(&s->d)) {
        mk_h2_stream_wake(s);
        mk_conn_resume(s->h2->conn);
    } else if (mk_http_stream_request_received(&s->d) || s->h2->remote.current == MK_H2_REMOTE_CLOSED) {
        mk_h2_stream_close(s, MK_OUTCOME_OK);
    } else if (little) {
        mk_h2_stream_drain(s);
    } else { /* RFC 9113, section 8.1: the client need not send the rest of the body */
        mk_h2_stream_reset(s, MK_H2_NO_ERROR, MK_OUTCOME_OK);
    }
}

/* Writes the head, or one DATA frame. */
static enum progress write_next_frame(struct mk_h2_stream *s)
{
    if (s->d.reply.current == MK_RESPONSE_PENDING && !write_head(s))
        return WAITS_ROOM;
    return mk_http_stream_response_written(&s->d) ? COMPLETE : write_body_frame(s);
}

bool mk_h2_output_try_send_now(struct mk_h2_stream *s)
{
    struct mk_h2 *h2 = s->h2;
    const struct mk_response_body *content = &s->d.x->response.content;
    bool in_the_way = h2->ready_mask || !mk_send_queue_is_empty(&h2->conn->out) || !mk_h2_state_is_alive(h2);
    if (in_the_way || content->source || content->length > AT_ONCE_MAX)
        return false;
    enum progress p = write_next_frame(s);
    if (p == COMPLETE)
        finish_response(s);
    return p == COMPLETE;
}

/* ---- All streams ---- */

/* Returns the most urgent stream that can send; NULL: none. Heads can be sent even if the connection's window
 * is closed. */
static struct mk_h2_stream *choose_stream(struct mk_h2 *h2)
{
    for (unsigned u = 0; u < MK_URGENCIES; u++) {
        if (!(h2->ready_mask >> u & 1))
            continue;
        if (mk_list_empty(&h2->ready[u]))
            h2->ready_mask &= ~(1u << u);
        MK_LIST_EACH_SAFE (at, &h2->ready[u]) {
            struct mk_h2_stream *s = MK_LIST_ENTRY(at, struct mk_h2_stream, queue_link);
            bool opens =
                h2->send_window > 0 || h2->remote.current == MK_H2_REMOTE_CLOSED; /* or the stream is to be
                                                                                   aborted */
            if (opens || s->d.reply.current == MK_RESPONSE_PENDING)
                return s;
        }
    }
    return NULL;
}

/* Called after a frame was written. An incremental response moves to the end of its list, so that other
 * streams get their turn. */
static void requeue_stream(struct mk_h2_stream *s)
{
    if (mk_http_stream_is_tunnel(&s->d))
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_TUNNEL);
    else if (s->timeout == MK_TIMEOUT_HANDLER) /* but a running RATE timeout continues */
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_NONE);
    if (s->priority.incremental) {
        mk_list_remove(&s->queue_link);
        mk_h2_stream_queue_output(s);
    }
}

/* Called when the stream waits for its source or a disk. */
static void wait_for_body(struct mk_h2_stream *s)
{
    mk_list_remove(&s->queue_link);
    if (s->d.awaits != MK_AWAITS_NOTHING || s->d.pending_prefetch) {
        mk_h2_stream_set_wait_timeout(s);
        return;
    }
    mk_h2_stream_wake(s); /* the source has resumed itself: other streams go first, regardless of urgency */
    mk_conn_resume(s->h2->conn);
}

/* Aborts the stream if the client has closed its side: it will send no WINDOW_UPDATE. */
static void wait_for_window(struct mk_h2_stream *s, enum progress which)
{
    if (s->h2->remote.current == MK_H2_REMOTE_CLOSED) {
        mk_h2_stream_close(s, MK_OUTCOME_CLIENT_ABORTED);
        return;
    }
    if (which == WAITS_CLIENT)
        return;
    mk_list_remove(&s->queue_link);
    if (!mk_http_stream_is_tunnel(&s->d))
        mk_h2_stream_set_timeout(s, MK_TIMEOUT_RATE);
}

/* Handles the result of a step. False: nothing more can be sent now. */
static bool handle_send_result(struct mk_h2_stream *s, enum progress p)
{
    struct mk_h2 *h2 = s->h2;
    switch (p) {
    case COMPLETE:
        finish_response(s);
        break;
    case MORE:
        requeue_stream(s);
        break;
    case WAITS_WINDOW:
    case WAITS_CLIENT:
        wait_for_window(s, p);
        break;
    case WAITS_CONTENT:
        wait_for_body(s);
        break;
    case WAITS_ROOM:
        return mk_h2_write_flush(h2) && mk_send_queue_is_empty(&h2->conn->out);
    }
    return true;
}

void mk_h2_output_send(struct mk_h2 *h2)
{
    uint64_t until = h2->conn->manager->counters->sent + ITERATION_BYTES_MAX;
    struct mk_h2_stream *s;
    if (!h2->ready_mask || !mk_send_queue_is_empty(&h2->conn->out))
        return;
    while (mk_h2_state_is_alive(h2) && (s = choose_stream(h2)) != NULL) {
        bool go_on = handle_send_result(s, write_next_frame(s));
        mk_h2_stream_free_closed(h2);
        if (!go_on)
            return;
        if (h2->conn->manager->counters->sent >= until) {
            mk_conn_resume(h2->conn);
            return;
        }
    }
}

bool mk_h2_output_is_blocked(const struct mk_h2 *h2)
{
    if (!mk_send_queue_is_empty(&h2->conn->out))
        return true;
    for (unsigned u = 0; u < MK_URGENCIES; u++)
        if (!mk_list_empty(&h2->ready[u]))
            return h2->send_window <= 0;
    return false;
}
