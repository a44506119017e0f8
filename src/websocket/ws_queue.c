/* SPDX-License-Identifier: Apache-2.0 */
#include "websocket/ws_queue.h"

#include <monkey/mem.h>

#include "websocket/ws_message.h"

struct mk_ws_chunk {
    struct mk_ws_chunk *next;
    struct mk_websocket_message *message; /* NULL: the bytes follow this struct */
    mk_str bytes;
};

static void append(struct mk_ws_queue *q, struct mk_ws_chunk *c)
{
    c->next = NULL;
    if (q->last)
        q->last->next = c;
    else
        q->first = c;
    q->last = c;
    q->weight += sizeof *c + c->bytes.len;
}

bool mk_ws_queue_add(struct mk_ws_queue *q, mk_str head, mk_str payload)
{
    if (payload.len > SIZE_MAX / 2)
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
    append(q, c);
    return true;
}

bool mk_ws_queue_add_shared(struct mk_ws_queue *q, struct mk_websocket_message *m, mk_str bytes)
{
    struct mk_ws_chunk *c = mk_mem_alloc(sizeof *c);
    if (!c)
        return false;
    mk_ws_message_hold(m);
    c->message = m;
    c->bytes = bytes;
    append(q, c);
    return true;
}

static void remove_first(struct mk_ws_queue *q)
{
    struct mk_ws_chunk *c = q->first;
    q->weight -= sizeof *c + c->bytes.len - q->at;
    q->at = 0;
    q->first = c->next;
    if (!q->first)
        q->last = NULL;
    mk_websocket_message_drop(c->message);
    mk_mem_free(c);
}

size_t mk_ws_queue_take(struct mk_ws_queue *q, char *room, size_t cap)
{
    size_t taken = 0;
    while (q->first && taken < cap) {
        mk_str rest = mk_str_skip(q->first->bytes, q->at);
        size_t n = mk_min(rest.len, cap - taken);
        memcpy(room + taken, rest.p, n);
        taken += n;
        q->at += n;
        q->weight -= n;
        if (n == rest.len)
            remove_first(q);
    }
    return taken;
}

void mk_ws_queue_clear(struct mk_ws_queue *q)
{
    while (q->first)
        remove_first(q);
}
