/* SPDX-License-Identifier: Apache-2.0 */
/* What waits to be sent by one socket: frames of its own, and those that it shares with others. */
#ifndef MK_WEBSOCKET_WS_QUEUE_H
#define MK_WEBSOCKET_WS_QUEUE_H

#include <monkey/websocket.h>

#include "base/compiler.h"

struct mk_ws_chunk;
struct mk_ws_frame;

/* A frame of a message that waits alone is held without memory for it, as in a broadcast. */
struct mk_ws_queue {
    struct mk_ws_chunk *first; /* NULL: nothing waits, or `only` */
    union {
        struct mk_ws_chunk *last;
        const struct mk_ws_frame *only; /* NULL: nothing */
    };
    size_t at;     /* bytes of the first that were taken */
    size_t weight; /* bytes that are left, and what it takes to keep them */
};

/* Two pieces, the head of a frame and its payload, which are copied. False when memory is out. */
bool mk_ws_queue_push(struct mk_ws_queue *q, mk_str head, mk_str payload) MK_MUST_USE;
/* A frame of a message, which is held until it is taken. */
bool mk_ws_queue_push_shared(struct mk_ws_queue *q, const struct mk_ws_frame *f) MK_MUST_USE;
/* Moves up to `cap` bytes to `room`, and answers how many. */
size_t mk_ws_queue_read(struct mk_ws_queue *q, char *buf, size_t cap);
/* Forgets everything. */
void mk_ws_queue_clear(struct mk_ws_queue *q);

static inline bool mk_ws_queue_is_empty(const struct mk_ws_queue *q)
{
    return !q->first && !q->only;
}

#endif
