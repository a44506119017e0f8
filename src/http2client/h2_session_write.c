/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_session_write.h"

#include <errno.h>

enum {
    KEPT_MAX = 4096, /* larger buffers are freed when they are empty */
    OUT_HARD_MAX = 1 << 20,
};

#define TO(state) MK_STATE_TO(MK_H2_SESSION_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_H2_SESSION_CONNECTING, "connecting", TO(OPEN) | TO(FAILED)),
    MK_STATE_ROW(MK_H2_SESSION_OPEN, "open", TO(DRAINING) | TO(FAILED)),
    MK_STATE_ROW(MK_H2_SESSION_DRAINING, "draining", TO(FAILED)),
    MK_STATE_ROW(MK_H2_SESSION_FAILED, "failed", 0),
};

static const char *state_problem(const void *owner)
{
    const struct mk_h2_session *ss = owner;
    return ss->state.current == MK_H2_SESSION_FAILED && !ss->error ? "it has an error" : NULL;
}

const struct mk_state_machine mk_h2_session_machine = {"HTTP/2 session", &states, MK_H2_SESSION_STATES,
                                                       state_problem};

/* ---- The buffer ---- */

void mk_h2_session_write_schedule(struct mk_h2_session *ss)
{
    struct mk_pool *p = ss->backend->pool;
    if (!mk_list_empty(&ss->unflushed))
        return;
    mk_list_add_last(&p->unflushed, &ss->unflushed);
    mk_deferred_post(p->end);
}

struct mk_buf *mk_h2_session_write_buffer(struct mk_h2_session *ss)
{
    mk_h2_session_write_schedule(ss);
    return &ss->out;
}

static void clear_buffer(struct mk_h2_session *ss)
{
    ss->sent = 0;
    mk_buf_clear(&ss->out);
    if (ss->out.cap > KEPT_MAX) {
        mk_buf_free(&ss->out);
        ss->out = mk_buf_growing(OUT_HARD_MAX);
    }
}

void mk_h2_session_write_flush(struct mk_h2_session *ss)
{
    if (ss->out.failed)
        mk_h2_session_write_fail(ss, -ENOMEM, "no memory for the output of the session");
    while (ss->conn.state.current == MK_UPSTREAM_CONN_OPEN && ss->sent < ss->out.len) {
        ssize_t n = mk_upstream_conn_write(&ss->conn, mk_str_skip(mk_buf_str(&ss->out), ss->sent), false);
        if (n == -EAGAIN || n == 0)
            return;
        if (n < 0) {
            mk_h2_session_write_fail(ss, (int)n, "the connection to the server broke");
            return;
        }
        ss->sent += (size_t)n;
    }
    if (ss->sent == ss->out.len)
        clear_buffer(ss);
}

/* ---- Control frames ---- */

/* Keeps the default table of HPACK and the default window of streams: a server need not wait for our SETTINGS
 * to know them. */
void mk_h2_session_write_preface(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    mk_h2_frame_emit_head(out, 3 * 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(out, MK_H2_ENABLE_PUSH, 0);
    mk_h2_frame_emit_setting(out, MK_H2_MAX_HEADER_LIST_SIZE, MK_RESPONSE_PARSER_HEAD_MAX);
    mk_h2_frame_emit_setting(out, MK_H2_NO_RFC7540_PRIORITIES, 1);
    mk_h2_frame_emit_window_update(out, 0, MK_H2_SESSION_WINDOW - MK_H2_WINDOW);
}

void mk_h2_session_write_rst_stream(struct mk_h2_session *ss, uint32_t stream, enum mk_h2_error error)
{
    mk_h2_frame_emit_rst_stream(mk_h2_session_write_buffer(ss), stream, error);
}

void mk_h2_session_write_window_update(struct mk_h2_session *ss, uint32_t stream, uint32_t by)
{
    mk_h2_frame_emit_window_update(mk_h2_session_write_buffer(ss), stream, by);
}

void mk_h2_session_write_ping(struct mk_h2_session *ss)
{
    if (ss->is_ping_sent)
        return;
    ss->is_ping_sent = true;
    mk_h2_frame_emit_ping(mk_h2_session_write_buffer(ss), false, MK_STR("monkeyms"));
}

/* ---- The end ---- */

void mk_h2_session_write_fail(struct mk_h2_session *ss, int error, const char *problem)
{
    if (ss->state.current == MK_H2_SESSION_FAILED)
        return;
    ss->error = error;
    ss->problem = problem;
    mk_h2_session_write_move(ss, MK_H2_SESSION_FAILED);
    mk_h2_session_write_schedule(ss);
}

void mk_h2_session_write_goaway(struct mk_h2_session *ss, enum mk_h2_error code, const char *problem)
{
    if (ss->state.current == MK_H2_SESSION_FAILED)
        return;
    mk_h2_frame_emit_goaway(&ss->out, 0, code);
    mk_h2_session_write_fail(ss, -EPROTO, problem);
}
