/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/h2_say.h"

/* What comes back when the client has seen our first GOAWAY. */
#define DRAIN_PING MK_STR("draining")

/* ---- The scratch ---- */

bool mk_h2_say_flush(struct mk_h2 *h2)
{
    struct mk_conn *c = h2->conn;
    uint64_t *sent = &c->service->counters->sent, before = *sent;
    if (h2->lost)
        return false;
    mk_err e = mk_outq_flush(&c->out, &c->stream, &c->service->out, false, sent);
    h2->n_flushes++;
    c->progress += *sent - before;
    h2->lost = e && e != -EAGAIN;
    return !h2->lost;
}

struct mk_buf *mk_h2_say_room(struct mk_h2 *h2, size_t n)
{
    struct mk_buf *out = mk_h2_out(h2);
    if (out->cap - out->len < n)
        (void)mk_h2_say_flush(h2);
    if (h2->lost)
        mk_buf_clear(out); /* nobody will see it */
    return out;
}

struct mk_buf *mk_h2_say_small(struct mk_h2 *h2, size_t n)
{
    h2->conn->progress -= n; /* which it makes up for when it is sent */
    return mk_h2_say_room(h2, n);
}

void mk_h2_say_reset(struct mk_h2 *h2, uint32_t stream, enum mk_h2_error error)
{
    h2->resets[h2->n_resets++ % MK_H2_RESETS_KEPT] = stream;
    mk_h2_frame_emit_reset(mk_h2_say_small(h2, MK_H2_FRAME_HEAD + 4), stream, error);
}

void mk_h2_say_window(struct mk_h2 *h2, uint32_t stream, uint32_t by)
{
    mk_h2_frame_emit_window(mk_h2_say_small(h2, MK_H2_FRAME_HEAD + 4), stream, by);
}

/* ---- Blocks of fields ---- */

/* A client that allows our table less than it did must hear that we agree (RFC 7541, section 4.2). We use
 * none, whatever it allows. */
enum { TABLE_SIZE_0 = 0x20 };

/* A block longer than a frame goes on in others (RFC 9113, section 6.10). `from` is where the room for the
 * first head is. */
static void split_block(struct mk_buf *out, size_t from, uint32_t id, unsigned flags)
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

/* Puts the head of its frame before what stands in the scratch from `from` on, nine bytes of which were left
 * free. False: it did not fit. */
bool mk_h2_say_close_block(struct mk_h2 *h2, size_t from, uint32_t id, unsigned flags)
{
    struct mk_buf *out = mk_h2_out(h2);
    if (!out->failed) {
        size_t len = out->len - from - MK_H2_FRAME_HEAD;
        flags |= MK_H2_END_HEADERS;
        if (MK_LIKELY(len <= MK_H2_FRAME_MAX))
            mk_h2_frame_write_head(out->p + from, (uint32_t)len, MK_H2_HEADERS, flags, id);
        else
            split_block(out, from, id, flags);
    }
    if (out->failed) {
        out->len = from;
        out->failed = false;
        return false;
    }
    h2->owes_table_size = false;
    return true;
}

void mk_h2_say_open_block(struct mk_h2 *h2)
{
    static const char room[MK_H2_FRAME_HEAD + 1] = {[MK_H2_FRAME_HEAD] = TABLE_SIZE_0};
    mk_buf_add(mk_h2_out(h2), mk_str_of(room, MK_H2_FRAME_HEAD + (h2->owes_table_size ? 1 : 0)));
}

void mk_h2_say_retract_block(struct mk_h2 *h2, size_t from)
{
    struct mk_buf *out = mk_h2_out(h2);
    if (out->p[from + MK_H2_FRAME_HEAD] == TABLE_SIZE_0)
        h2->owes_table_size = true;
    out->len = from;
}

/* ---- The end of the connection ---- */

/* GOAWAY with the last stream that we serve: never a higher one than was said before. */
static void say_last(struct mk_h2 *h2, enum mk_h2_error error)
{
    uint32_t last = h2->last_stream;
    if (h2->leaving && h2->final_stream < last)
        last = h2->final_stream;
    mk_h2_frame_emit_goaway(mk_h2_say_small(h2, MK_H2_FRAME_HEAD + 8), last, error);
    h2->final_stream = last;
    h2->leaving = true;
}

void mk_h2_say_failed(struct mk_h2 *h2, enum mk_h2_error error, enum mk_h2_reason why)
{
    if (h2->failed)
        return;
    h2->failed = true;
    h2->conn->service->counters->h2_ended[why]++;
    mk_log_debug(h2->conn->service->log, "a connection of HTTP/2 was ended: %s", mk_h2_reason_names[why]);
    say_last(h2, error);
}

void mk_h2_say_leaving(struct mk_h2 *h2)
{
    if (h2->drain_told || h2->leaving || h2->failed)
        return;
    h2->drain_told = true;
    h2->told_at = h2->conn->n_requests;
    mk_h2_frame_emit_goaway(mk_h2_say_small(h2, MK_H2_FRAME_HEAD + 8), MK_H2_STREAM_MAX, MK_H2_NO_ERROR);
    mk_h2_frame_emit_ping(mk_h2_say_small(h2, MK_H2_FRAME_HEAD + 8), false, DRAIN_PING);
}

/* It says that it is the answer to our PING; should it not be, nothing is lost but the second step. */
void mk_h2_say_left(struct mk_h2 *h2)
{
    if (h2->drain_told && !h2->leaving)
        say_last(h2, MK_H2_NO_ERROR);
}

void mk_h2_say_farewell(struct mk_h2 *h2)
{
    say_last(h2, MK_H2_NO_ERROR);
}
