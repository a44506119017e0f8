/* SPDX-License-Identifier: Apache-2.0 */
/* Send queue of a socket: its own frames, and frames shared with other sockets. */
#ifndef MK_WEBSOCKET_WS_QUEUE_H
#define MK_WEBSOCKET_WS_QUEUE_H

#include <monkey/websocket.h>

#include "base/compiler.h"

struct mk_ws_chunk;
struct mk_ws_frame;

/* A single shared frame is queued without allocating memory, as in a broadcast. */
struct mk_ws_queue {
    struct mk_ws_chunk *first; /* first entry; NULL: the queue is empty, or its single frame is in `only` */
    union {
        struct mk_ws_chunk *last;
        const struct mk_ws_frame *only; /* NULL: none */
    };
    size_t at;     /* bytes of the first entry already taken */
    size_t weight; /* remaining bytes, including overhead */
};

/* Queues a copy of two pieces, the head of a frame and its payload. False: out of memory. */
bool mk_ws_queue_push(struct mk_ws_queue *q, mk_str head, mk_str payload) MK_MUST_USE;
/* Queues a frame of a message, and holds a reference until the frame is read. */
bool mk_ws_queue_push_shared(struct mk_ws_queue *q, const struct mk_ws_frame *f) MK_MUST_USE;
/* Moves up to `cap` bytes to the buffer. Returns the number of bytes. */
size_t mk_ws_queue_read(struct mk_ws_queue *q, char *buf, size_t cap);
/* Removes everything. */
void mk_ws_queue_clear(struct mk_ws_queue *q);

static inline bool mk_ws_queue_is_empty(const struct mk_ws_queue *q)
{
    return !q->first && !q->only;
}

#endif
