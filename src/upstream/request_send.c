/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_send.h"

#include "upstream/attempt_parent.h"
#include "upstream/conn.h"
#include "upstream/request_state.h"

/* Minimum space for a read from the body source, and minimum unused space to free. */
enum { ROOM_MIN = 4096 };

/* ---- Body into the buffer ---- */

static uint64_t body_bytes_left(const struct mk_upstream_request_body_state *content)
{
    return content->length == MK_LENGTH_UNKNOWN ? UINT64_MAX : (uint64_t)content->length - content->done;
}

/* Maximum size of the next body piece. */
static size_t next_piece_max(const struct mk_upstream_request *c)
{
    size_t used = c->out.len - c->head_len + c->frame->before + c->frame->behind;
    size_t space = used < MK_UPSTREAM_REQUEST_SEND_WINDOW ? MK_UPSTREAM_REQUEST_SEND_WINDOW - used : 0;
    uint64_t left = body_bytes_left(&c->content);
    space = mk_min(space, MK_CODEC_PIECE_MAX);
    return left < space ? (size_t)left : space;
}

static ssize_t read_body_source(struct mk_upstream_request_body_state *content, char *buf, size_t cap)
{
    if (content->source && !content->text.p)
        return content->source->source.read(content->ctx, buf, cap);
    mk_str part = mk_str_first(mk_str_skip(content->text, (size_t)content->done), cap);
    if (part.len)
        memcpy(buf, part.p, part.len);
    return (ssize_t)part.len;
}

/* Called when the complete body is in the buffer or was sent. */
static ssize_t finish_body(struct mk_upstream_request *c)
{
    struct mk_upstream_request_body_state *content = &c->content;
    if (content->length != MK_LENGTH_UNKNOWN && body_bytes_left(content)) {
        c->problem = "the content of the request is shorter than its length";
        return -EBADMSG;
    }
    if (c->frame->end)
        c->frame->end(&c->out, content->text.p ? NULL : content->source, content->ctx);
    content->is_over = true;
    mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_ENDING);
    c->problem = "no memory for the end of the request";
    return c->out.failed ? -ENOMEM : 0;
}

/* Appends a body piece. Returns its length; 0: the body has ended, or there is no space; -EAGAIN; or the
 * error of the source. */
static ssize_t append_body_piece(struct mk_upstream_request *c)
{
    size_t cap = next_piece_max(c);
    if (body_bytes_left(&c->content) == 0)
        return finish_body(c);
    if (cap == 0)
        return 0;
    c->problem = "no memory for the content of the request";
    if (!mk_buf_reserve(&c->out, c->frame->before + cap + c->frame->behind))
        return -ENOMEM;
    char *at = c->out.p + c->out.len + c->frame->before;
    ssize_t n = read_body_source(&c->content, at, cap);
    c->problem = "the content of the request could not be read";
    if (n <= 0)
        return n ? n : finish_body(c);
    if (c->frame->wrap)
        c->frame->wrap(at, (size_t)n);
    c->content.done += (uint64_t)n;
    c->out.len += c->frame->before + (size_t)n + c->frame->behind;
    return n;
}

/* Fills the buffer, so that a small request is sent in one write. Returns 0, -EAGAIN, or the error of the
 * source. */
static int fill_send_buffer(struct mk_upstream_request *c)
{
    ssize_t n = 1;
    while (n > 0 && c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENDING)
        n = append_body_piece(c);
    return (int)n;
}

/* Called when the buffer was sent completely. Keeps its contents for another attempt until the space is
 * needed. */
static void reset_sent_buffer(struct mk_upstream_request *c)
{
    size_t used = c->out.len - c->head_len;
    if (c->state.current == MK_UPSTREAM_REQUEST_OPEN && used + ROOM_MIN <= MK_UPSTREAM_REQUEST_SEND_WINDOW)
        return;
    c->content.is_gone |= used > 0;
    c->out.len = c->sent = c->head_len;
}

/* Frees unused space while the source has no data. */
static void shrink_send_buffer(struct mk_upstream_request *c)
{
    size_t cap = mk_max(c->out.len, 1);
    if (c->out.cap < cap + ROOM_MIN)
        return;
    char *p = mk_mem_realloc(c->out.p, cap);
    if (!p)
        return;
    c->out.p = p;
    c->out.cap = cap;
}

/* ---- The buffer to the server ---- */

/* Writes the buffer. 0: everything was sent; 1: yield to other connections; -EAGAIN; or an error. */
static int write_buffer(struct mk_upstream_request *c, bool more, size_t *budget)
{
    while (c->sent < c->out.len) {
        if (*budget == 0)
            return 1;
        mk_str rest = mk_str_of(c->out.p + c->sent, c->out.len - c->sent);
        ssize_t n = mk_upstream_conn_write(c->conn, rest, more);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return -EAGAIN;
        c->sent += (size_t)n;
        *budget -= mk_min(*budget, (size_t)n);
        if (c->state.current == MK_UPSTREAM_REQUEST_OPEN)
            mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
    }
    return 0;
}

static void finish_output(struct mk_upstream_request *c)
{
    mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_SENT);
    if (c->state.current == MK_UPSTREAM_REQUEST_OPEN)
        mk_upstream_request_timer_set_head(c);
    else if (c->state.current == MK_UPSTREAM_REQUEST_UPGRADED)
        mk_upstream_conn_shutdown_write(c->conn);
}

/* Sends a piece. True: continue. */
static bool send_piece(struct mk_upstream_request *c, size_t *budget,
                       enum mk_upstream_request_send_result *result)
{
    int filled = fill_send_buffer(c);
    if (filled < 0 && filled != -EAGAIN) {
        c->error = filled;
        *result = MK_UPSTREAM_REQUEST_SEND_SOURCE_FAILED;
        return false;
    }
    bool more = c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENDING && filled == 0;
    int written = write_buffer(c, more, budget);
    if (written == 0 && c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_ENDING) {
        finish_output(c);
        return false;
    }
    if (written == 0 && c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD) {
        mk_upstream_request_timer_set_head(c);
        return false;
    }
    if (written == 0) {
        reset_sent_buffer(c);
        if (filled == -EAGAIN)
            shrink_send_buffer(c);
        return filled != -EAGAIN;
    }
    if (written == -EAGAIN && c->state.current == MK_UPSTREAM_REQUEST_OPEN)
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_ROOM);
    if (written == 1)
        *result = MK_UPSTREAM_REQUEST_SEND_YIELDS;
    if (written >= 0 || written == -EAGAIN)
        return false;
    mk_upstream_request_state_end_output(c, written,
                                         "the server closed the connection while the request was sent");
    *result = MK_UPSTREAM_REQUEST_SEND_CONN_BROKEN;
    return false;
}

enum mk_upstream_request_send_result mk_upstream_request_send_run(struct mk_upstream_request *c)
{
    enum mk_upstream_request_send_result result = MK_UPSTREAM_REQUEST_SEND_WAITS;
    size_t budget = MK_UPSTREAM_REQUEST_SEND_BUDGET;
    while (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD ||
           c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENDING ||
           c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_ENDING)
        if (!send_piece(c, &budget, &result))
            break;
    return result;
}

/* ---- Beginnings ---- */

void mk_upstream_request_send_start(struct mk_upstream_request *c)
{
    bool is_in_buffer = c->content.is_over || c->content.done; /* an earlier attempt has buffered the body: it
                                                                * is available without waiting */
    c->sent = 0;
    if (MK_UNLIKELY(c->conn->attempt != NULL))
        mk_attempt_parent_set(c);
    mk_upstream_request_state_move_output(c, c->content.is_over ? MK_UPSTREAM_REQUEST_OUTPUT_ENDING
                                             : c->content.is_held && !is_in_buffer
                                                 ? MK_UPSTREAM_REQUEST_OUTPUT_HELD
                                                 : MK_UPSTREAM_REQUEST_OUTPUT_SENDING);
}

void mk_upstream_request_send_held_body(struct mk_upstream_request *c)
{
    if (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD)
        mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_SENDING);
}

bool mk_upstream_request_send_rewind(struct mk_upstream_request *c)
{
    struct mk_upstream_request_body_state *content = &c->content;
    if (!content->is_gone)
        return true;
    const struct mk_upstream_request_body *source = content->text.p ? NULL : content->source;
    if (source && !(source->rewind && source->rewind(content->ctx)))
        return false;
    content->done = 0;
    content->is_over = content->is_gone = false;
    c->out.len = c->head_len;
    return true;
}

void mk_upstream_request_send_init_tunnel(struct mk_upstream_request *c)
{
    c->head_len = c->out.len = c->sent = 0;
    c->frame = &mk_codec_plain_frame;
    c->content.text = MK_STR_NULL; /* from now on, the source provides the tunnel data */
    c->content.length = MK_LENGTH_UNKNOWN;
    c->content.is_over = false;
    if (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENT)
        mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_SENDING);
}
