/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_write.h"

/* Payload of the PING after the first GOAWAY: its acknowledgment proves that the client has received the
 * GOAWAY. */
#define WARNING_PING MK_STR("draining")

/* ---- The output buffer ---- */

bool mk_h2_write_flush(struct mk_h2 *h2)
{
    struct mk_conn *c = h2->conn;
    uint64_t *sent = &c->manager->counters->sent, before = *sent;
    if (h2->local.current == MK_H2_LOCAL_LOST)
        return false;
    mk_err e = mk_send_queue_write(&c->out, &c->stream, &c->manager->out, false, sent);
    h2->n_flushes++;
    c->progress += *sent - before;
    if (!e || e == -EAGAIN)
        return true;
    mk_h2_state_move_local(h2, MK_H2_LOCAL_LOST);
    return false;
}

struct mk_buf *mk_h2_write_reserve(struct mk_h2 *h2, size_t n)
{
    struct mk_buf *out = mk_h2_write_buffer(h2);
    if (out->cap - out->len < n)
        (void)mk_h2_write_flush(h2);
    if (h2->local.current == MK_H2_LOCAL_LOST)
        mk_buf_clear(out); /* the buffered frames can no longer be sent */
    return out;
}

struct mk_buf *mk_h2_write_reserve_control(struct mk_h2 *h2, size_t n)
{
    h2->conn->progress -= n; /* sending the frame will add n again */
    return mk_h2_write_reserve(h2, n);
}

void mk_h2_write_rst_stream(struct mk_h2 *h2, uint32_t stream, enum mk_h2_error error)
{
    h2->resets[h2->n_resets++ % MK_H2_RESETS_KEPT] = stream;
    mk_h2_frame_emit_rst_stream(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 4), stream, error);
}

void mk_h2_write_window_update(struct mk_h2 *h2, uint32_t stream, uint32_t by)
{
    mk_h2_frame_emit_window_update(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 4), stream, by);
}

/* ---- Header blocks ---- */

/* When a client reduces the table size, the next header block must confirm it (RFC 7541, section 4.2). We
 * never use the table, so the confirmed size is 0. */
enum { TABLE_SIZE_0 = 0x20 };

/* A block that exceeds one frame continues in CONTINUATION frames (RFC 9113, section 6.10). `from`: offset of
 * the first frame header. */
static void split_header_block(struct mk_buf *out, size_t from, uint32_t id, unsigned flags)
{
    size_t at = from + MK_H2_FRAME_HEAD + MK_H2_FRAME_MAX;
    mk_h2_frame_write_head(out->p + from, MK_H2_FRAME_MAX, MK_H2_HEADERS,
                           flags & ~(unsigned)MK_H2_END_HEADERS, id);
    while (at < out->len) {
        size_t rest = out->len - at, n = mk_min(rest, (size_t)MK_H2_FRAME_MAX);
        if (out->cap - out->len < MK_H2_FRAME_HEAD) {
            out->failed = true;
            return;
        }
        memmove(out->p + at + MK_H2_FRAME_HEAD, out->p + at, rest);
        out->len += MK_H2_FRAME_HEAD;
        mk_h2_frame_write_head(out->p + at, (uint32_t)n, MK_H2_CONTINUATION,
                               n == rest ? MK_H2_END_HEADERS : 0, id);
        at += MK_H2_FRAME_HEAD + n;
    }
}

bool mk_h2_write_end_block(struct mk_h2 *h2, size_t from, uint32_t id, unsigned flags)
{
    struct mk_buf *out = mk_h2_write_buffer(h2);
    if (!out->failed) {
        size_t len = out->len - from - MK_H2_FRAME_HEAD;
        flags |= MK_H2_END_HEADERS;
        if (MK_LIKELY(len <= MK_H2_FRAME_MAX))
            mk_h2_frame_write_head(out->p + from, (uint32_t)len, MK_H2_HEADERS, flags, id);
        else
            split_header_block(out, from, id, flags);
    }
    if (out->failed) {
        out->len = from;
        out->failed = false;
        return false;
    }
    h2->owes_table_size = false;
    return true;
}

void mk_h2_write_begin_block(struct mk_h2 *h2)
{
    static const char buf[MK_H2_FRAME_HEAD + 1] = {[MK_H2_FRAME_HEAD] = TABLE_SIZE_0};
    mk_buf_add(mk_h2_write_buffer(h2), mk_str_of(buf, MK_H2_FRAME_HEAD + (h2->owes_table_size ? 1 : 0)));
}

void mk_h2_write_remove_block(struct mk_h2 *h2, size_t from)
{
    struct mk_buf *out = mk_h2_write_buffer(h2);
    if (out->p[from + MK_H2_FRAME_HEAD] == TABLE_SIZE_0)
        h2->owes_table_size = true;
    out->len = from;
}

/* Can a header name of this length be forbidden? This quick check rules out most names. */
static bool may_be_forbidden_name_len(size_t len)
{
    return len == 7 || len == 10 || len == 16 || len == 17;
}

/* Is it a connection-specific header, which HTTP/2 forbids (RFC 9113, section 8.2.2)? Plugins written for
 * HTTP/1 may add such headers. */
static bool is_connection_specific(mk_str name)
{
    return mk_str_eq_nocase(name, MK_STR("Connection")) || mk_str_eq_nocase(name, MK_STR("Keep-Alive")) ||
           mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")) || mk_str_eq_nocase(name, MK_STR("Upgrade")) ||
           mk_str_eq_nocase(name, MK_STR("Proxy-Connection"));
}

void mk_h2_write_header(struct mk_buf *out, mk_str name, mk_str value)
{
    value = mk_str_trim(value);
    if (may_be_forbidden_name_len(name.len) && is_connection_specific(name))
        return;
    if (name.len == 10 && mk_str_eq_nocase(name, MK_STR("Set-Cookie")))
        mk_hpack_encode_never_indexed(out, name, value);
    else
        mk_hpack_encode(out, name, value);
}

/* ---- The end of the connection ---- */

/* Writes GOAWAY with the last served stream, which is never higher than in an earlier GOAWAY. */
static void write_goaway_frame(struct mk_h2 *h2, enum mk_h2_error error)
{
    if (h2->last_stream < h2->final_stream)
        h2->final_stream = h2->last_stream;
    mk_h2_frame_emit_goaway(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 8), h2->final_stream, error);
}

void mk_h2_write_goaway_error(struct mk_h2 *h2, enum mk_h2_error error, enum mk_h2_reason message)
{
    if (!mk_h2_state_is_alive(h2))
        return;
    mk_h2_state_move_local(h2, MK_H2_LOCAL_FAILED);
    mk_counter_add(&h2->conn->manager->counters->h2_ended[message], 1);
    mk_log_debug(h2->conn->manager->log, "closed an HTTP/2 connection: %s",
                 mk_conn_manager_h2_reason_names[message]);
    write_goaway_frame(h2, error);
}

void mk_h2_write_goaway_warning(struct mk_h2 *h2)
{
    if (h2->local.current != MK_H2_LOCAL_OPEN)
        return;
    mk_h2_state_move_local(h2, MK_H2_LOCAL_WARNED);
    h2->warned_at = h2->conn->n_requests;
    mk_h2_frame_emit_goaway(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 8), MK_H2_STREAM_MAX,
                            MK_H2_NO_ERROR);
    mk_h2_frame_emit_ping(mk_h2_write_reserve_control(h2, MK_H2_FRAME_HEAD + 8), false, WARNING_PING);
}

/* Any PING acknowledgment counts: an unsolicited one only shortens the wait. */
void mk_h2_write_goaway_after_ping(struct mk_h2 *h2)
{
    if (h2->local.current == MK_H2_LOCAL_WARNED)
        mk_h2_write_goaway(h2);
}

void mk_h2_write_goaway(struct mk_h2 *h2)
{
    if (h2->local.current == MK_H2_LOCAL_OPEN || h2->local.current == MK_H2_LOCAL_WARNED)
        mk_h2_state_move_local(h2, MK_H2_LOCAL_GOAWAY);
    write_goaway_frame(h2, MK_H2_NO_ERROR);
}
