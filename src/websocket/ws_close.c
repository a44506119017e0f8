/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_close.h"

#include <errno.h>
#include <monkey/mem.h>

#include "http/utf8.h"
#include "http/ws_frame_head.h"
#include "websocket/ws_send.h"

enum { CODE_LEN = 2 };

/* Starts the timeout of the closing handshake. */
static void start_close_timeout(struct mk_websocket *s)
{
    uint32_t ms = mk_ws_close_ms(s);
    if (ms == MK_FOREVER)
        mk_timer_stop(&s->timer);
    else
        mk_timer_set(&s->timer, s->worker->worker, ms);
    mk_ws_resume(s);
}

static bool send_close_frame(struct mk_websocket *s, unsigned code, mk_str reason)
{
    char buf[MK_WS_CONTROL_MAX];
    struct mk_buf payload = mk_buf_fixed(buf, sizeof buf);
    if (code != MK_WEBSOCKET_NO_CODE) {
        mk_buf_add_char(&payload, (char)(code >> 8));
        mk_buf_add_char(&payload, (char)code);
        mk_buf_add(&payload, reason);
    }
    return mk_ws_send_control(s, MK_WS_CLOSE, mk_buf_str(&payload));
}

void mk_ws_close_with_error(struct mk_websocket *s, unsigned code)
{
    bool was_open = s->state.current == MK_WS_OPEN;
    if (!mk_ws_set_state(s, MK_WS_ENDING))
        return;
    s->code = (uint16_t)code;
    if (was_open && !send_close_frame(s, code, MK_STR_NULL)) {
        mk_websocket_abort(s);
        return;
    }
    start_close_timeout(s);
}

/* Returns the close code of the payload; 0: the code is not allowed in a Close frame. */
static unsigned parse_close_code(mk_str payload)
{
    if (payload.len == 0)
        return MK_WEBSOCKET_NO_CODE;
    const uint8_t *p = (const uint8_t *)payload.p;
    unsigned code = payload.len < CODE_LEN ? 0 : (unsigned)p[0] << 8 | p[1];
    return mk_ws_frame_is_close_code(code) ? code : 0;
}

static void store_reason(struct mk_websocket *s, mk_str reason)
{
    s->reason = reason.len ? mk_mem_alloc(reason.len) : NULL;
    if (!s->reason)
        return;
    memcpy(s->reason, reason.p, reason.len);
    s->reason_len = (uint8_t)reason.len;
}

void mk_ws_close_on_frame(struct mk_websocket *s, mk_str payload)
{
    unsigned code = parse_close_code(payload);
    mk_str reason = mk_str_skip(payload, CODE_LEN);
    if (!code) {
        mk_ws_close_with_error(s, MK_WEBSOCKET_PROTOCOL_ERROR);
        return;
    }
    if (!mk_utf8_is_valid(reason)) {
        mk_ws_close_with_error(s, MK_WEBSOCKET_BAD_DATA);
        return;
    }
    bool was_open = s->state.current == MK_WS_OPEN;
    if (!mk_ws_set_state(s, MK_WS_ENDING))
        return;
    s->code = (uint16_t)code;
    store_reason(s, reason);
    if (was_open && !send_close_frame(s, code, MK_STR_NULL)) {
        mk_websocket_abort(s);
        return;
    }
    start_close_timeout(s);
}

void mk_ws_close_on_eof(struct mk_websocket *s)
{
    if (mk_ws_set_state(s, MK_WS_ENDING))
        start_close_timeout(s);
}

int mk_websocket_close(struct mk_websocket *s, unsigned code, mk_str reason)
{
    bool has_code = code != MK_WEBSOCKET_NO_CODE;
    if ((has_code && !mk_ws_frame_is_close_code(code)) ||
        reason.len > (has_code ? MK_WEBSOCKET_REASON_MAX : 0) || !mk_utf8_is_valid(reason))
        return -EINVAL;
    if (!mk_ws_set_state(s, MK_WS_CLOSING))
        return -EALREADY;
    if (send_close_frame(s, code, reason))
        start_close_timeout(s);
    else
        mk_websocket_abort(s);
    return 0;
}

void mk_websocket_abort(struct mk_websocket *s)
{
    if (!mk_ws_set_state(s, MK_WS_BROKEN))
        return;
    mk_ws_queue_clear(&s->queue);
    mk_timer_stop(&s->timer);
    mk_request_abort_tunnel(s->request);
}
