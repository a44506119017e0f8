/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws.h"

enum {
    MESSAGE_MAX = 1 << 20,
    QUEUE_MAX = 256 << 10,
    PING_MS = 30 * 1000,
    CLOSE_MS = 5 * 1000,
    COMPRESS_MIN = 64,
    DEFLATE_IDLE_MS = 1000,
};

#define TO(state) MK_STATE_TO(MK_WS_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_WS_HANDSHAKE, "handshake", TO(OPEN) | TO(OVER)),
    MK_STATE_ROW(MK_WS_OPEN, "open", TO(CLOSING) | TO(ENDING) | TO(BROKEN) | TO(OVER)),
    MK_STATE_ROW(MK_WS_CLOSING, "closing", TO(ENDING) | TO(BROKEN) | TO(OVER)),
    MK_STATE_ROW(MK_WS_ENDING, "ending", TO(BROKEN) | TO(OVER)),
    MK_STATE_ROW(MK_WS_BROKEN, "broken", TO(OVER)),
    MK_STATE_ROW(MK_WS_OVER, "over", 0),
};

static const char *websocket_invariant_error(const void *owner)
{
    const struct mk_websocket *s = owner;
    return s->is_paused && s->state.current != MK_WS_OPEN ? "only an open socket is paused" : NULL;
}

const struct mk_state_machine mk_ws_machine = {"WebSocket", &states, MK_WS_STATES, websocket_invariant_error};

bool mk_ws_set_state(struct mk_websocket *s, enum mk_ws_state to)
{
    if (!mk_state_can_move(&s->state, &mk_ws_machine, to))
        return false;
    s->is_paused = false; /* the owner gets no more messages, but input must be read to detect EOF */
    mk_state_move(&s->state, &mk_ws_machine, s, to);
    return true;
}

void mk_ws_resume(struct mk_websocket *s)
{
    if (!s->is_within)
        mk_request_resume(s->request);
}

void mk_ws_resume_later(struct mk_websocket *s)
{
    if (!mk_list_empty(&s->later))
        return;
    mk_list_add_last(&s->worker->later, &s->later);
    mk_deferred_post(s->worker->iteration_end);
}

void mk_ws_resume_all_later(struct mk_ws_worker *w)
{
    w->inflated = 0;
    MK_LIST_EACH_SAFE (at, &w->later) {
        mk_list_remove(at);
        mk_request_resume(MK_LIST_ENTRY(at, struct mk_websocket, later)->request);
    }
}

static size_t size_or_default(size_t value, size_t otherwise)
{
    return value ? value : otherwise;
}

static uint32_t time_or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

size_t mk_ws_message_max(const struct mk_websocket *s)
{
    return size_or_default(s->options->message_max, MESSAGE_MAX);
}

size_t mk_ws_frame_max(const struct mk_websocket *s)
{
    return size_or_default(s->options->frame_max, mk_ws_message_max(s));
}

size_t mk_ws_queue_max(const struct mk_websocket *s)
{
    return size_or_default(s->options->queue_max, QUEUE_MAX);
}

uint32_t mk_ws_ping_ms(const struct mk_websocket *s)
{
    return time_or_default(s->options->ping_ms, PING_MS);
}

uint32_t mk_ws_close_ms(const struct mk_websocket *s)
{
    return time_or_default(s->options->close_ms, CLOSE_MS);
}

size_t mk_ws_compress_min(const struct mk_websocket *s)
{
    return size_or_default(s->options->compress_min, COMPRESS_MIN);
}

struct mk_ws_deflate *mk_ws_shared_deflate(struct mk_ws_worker *w, unsigned bits)
{
    struct mk_ws_deflate **c = &w->coders[bits - MK_WS_EXTENSION_BITS_MIN];
    mk_timer_set(&w->rest, w->worker, DEFLATE_IDLE_MS);
    if (!*c)
        *c = mk_ws_deflate_new(bits);
    return *c;
}
