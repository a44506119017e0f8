/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_queue.h"

#include <monkey/mem.h>

#include "websocket/ws_message.h"

struct mk_ws_chunk {
    struct mk_ws_chunk *next;
    struct mk_websocket_message *message; /* NULL: the bytes follow this struct */
    mk_str bytes;
};

static void append_chunk(struct mk_ws_queue *q, struct mk_ws_chunk *c)
{
    c->next = NULL;
    if (q->first)
        q->last->next = c;
    else
        q->first = c;
    q->last = c;
}

/* Appends a frame. The caller adds its size to the queue's weight. */
static bool append_frame(struct mk_ws_queue *q, const struct mk_ws_frame *f)
{
    struct mk_ws_chunk *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return false;
    c->message = f->message;
    c->bytes = f->bytes;
    append_chunk(q, c);
    return true;
}

/* Moves the frame in `only` to the list of chunks, because another one follows. False: out of memory. */
static bool convert_to_chunks(struct mk_ws_queue *q)
{
    return q->first || !q->only || append_frame(q, q->only);
}

bool mk_ws_queue_push(struct mk_ws_queue *q, mk_str head, mk_str payload)
{
    if (payload.len > SIZE_MAX / 2 || !convert_to_chunks(q))
        return false;
    struct mk_ws_chunk *c = mk_mem_alloc(sizeof *c + head.len + payload.len);
    if (!c)
        return false;
    char *bytes = (char *)(c + 1);
    memcpy(bytes, head.p, head.len);
    if (payload.len)
        memcpy(bytes + head.len, payload.p, payload.len);
    c->message = NULL;
    c->bytes = mk_str_of(bytes, head.len + payload.len);
    append_chunk(q, c);
    q->weight += sizeof *c + c->bytes.len;
    return true;
}

bool mk_ws_queue_push_shared(struct mk_ws_queue *q, const struct mk_ws_frame *f)
{
    if (mk_ws_queue_is_empty(q))
        q->only = f;
    else if (!convert_to_chunks(q) || !append_frame(q, f))
        return false;
    mk_ws_message_ref(f->message);
    q->weight += sizeof(struct mk_ws_chunk) + f->bytes.len;
    return true;
}

static void remove_only_frame(struct mk_ws_queue *q)
{
    mk_websocket_message_free(q->only->message);
    q->only = NULL;
    q->at = q->weight = 0;
}

static void remove_first_chunk(struct mk_ws_queue *q)
{
    struct mk_ws_chunk *c = q->first;
    q->weight -= sizeof *c + c->bytes.len - q->at;
    q->at = 0;
    q->first = c->next;
    if (!q->first)
        q->last = NULL;
    mk_websocket_message_free(c->message);
    mk_mem_free(c);
}

/* Copies as many of the chunk's bytes as fit. True: the chunk is finished. */
static bool read_chunk(struct mk_ws_queue *q, mk_str bytes, char *buf, size_t cap, size_t *taken)
{
    size_t n = mk_min(bytes.len - q->at, cap - *taken);
    memcpy(buf + *taken, bytes.p + q->at, n);
    *taken += n;
    q->at += n;
    q->weight -= n;
    return q->at == bytes.len;
}

size_t mk_ws_queue_read(struct mk_ws_queue *q, char *buf, size_t cap)
{
    size_t taken = 0;
    if (!q->first && q->only && read_chunk(q, q->only->bytes, buf, cap, &taken))
        remove_only_frame(q);
    while (q->first && taken < cap)
        if (read_chunk(q, q->first->bytes, buf, cap, &taken))
            remove_first_chunk(q);
    return taken;
}

void mk_ws_queue_clear(struct mk_ws_queue *q)
{
    if (!q->first && q->only)
        remove_only_frame(q);
    while (q->first)
        remove_first_chunk(q);
}
