/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_recv_window.h"

#include "base/mem.h"
#include "http2/h2_write.h"

enum {
    PIECE_MIN = 1024,         /* small frames share a piece */
    WIDE_WINDOW = 256 * 1024, /* window of a stream whose handler reads, if the spare part is large enough */
    UPDATE_MIN = 16 * 1024,   /* minimum increment of the connection's window, unless the window is nearly
                                 closed */
};

struct mk_h2_body_chunk {
    struct mk_h2_body_chunk *next;
    uint32_t from, to, cap;
    char bytes[];
};

/* ---- Initialization ---- */

/* Until a client has seen our SETTINGS, it may use the initial windows of RFC 9113: space for them is set
 * aside. Half of the rest is divided among all streams that may be open. */
void mk_h2_recv_window_init(struct mk_h2 *h2)
{
    const struct mk_h2_limits *l = &h2->conn->service->limits->h2;
    uint32_t usable = l->unread_max > MK_H2_WINDOW ? l->unread_max - MK_H2_WINDOW : 0;
    uint32_t share = usable / 2 / l->streams_max;
    h2->share = share < MK_H2_WINDOW ? share : MK_H2_WINDOW;
    h2->spare = usable - h2->share * l->streams_max;
    h2->early = MK_H2_WINDOW - h2->share;
    h2->receive_window = l->unread_max;
    mk_list_init(&h2->touched);
}

void mk_h2_recv_window_init_stream(struct mk_h2_stream *s)
{
    s->receive_window = s->window_size = s->h2->share;
    mk_list_init(&s->touched);
}

void mk_h2_recv_window_mark_changed(struct mk_h2_stream *s)
{
    if (mk_list_empty(&s->touched))
        mk_list_add_last(&s->h2->touched, &s->touched);
}

/* Takes back the part of the window beyond the stream's share. */
static void shrink_window(struct mk_h2_stream *s)
{
    s->h2->spare += s->window_size - s->h2->share;
    s->window_size = s->h2->share;
}

void mk_h2_recv_window_close_stream(struct mk_h2_stream *s)
{
    mk_h2_recv_window_discard(s);
    shrink_window(s);
    mk_list_remove(&s->touched);
}

/* ---- Unread body ---- */

static void count_unread_bytes(struct mk_h2_stream *s, int64_t by)
{
    s->held += by;
    s->h2->held += by;
}

static struct mk_h2_body_chunk *append_chunk(struct mk_h2_stream *s, size_t len)
{
    size_t cap = len > PIECE_MIN ? len : PIECE_MIN;
    struct mk_h2_body_chunk *p = mk_mem_alloc(sizeof *p + cap);
    if (!p)
        return NULL;
    *p = (struct mk_h2_body_chunk){.cap = (uint32_t)cap};
    if (s->last)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return p;
}

static mk_str fill_chunk(struct mk_h2_stream *s, struct mk_h2_body_chunk *p, mk_str data)
{
    size_t n = mk_min(p->cap - p->to, data.len);
    memcpy(p->bytes + p->to, data.p, n);
    p->to += (uint32_t)n;
    count_unread_bytes(s, (int64_t)n);
    return mk_str_skip(data, n);
}

bool mk_h2_recv_window_enqueue(struct mk_h2_stream *s, mk_str data)
{
    if (s->last && data.len)
        data = fill_chunk(s, s->last, data);
    if (!data.len)
        return true;
    struct mk_h2_body_chunk *p = append_chunk(s, data.len);
    if (!p)
        return false;
    (void)fill_chunk(s, p, data);
    return true;
}

static void free_first_chunk(struct mk_h2_stream *s)
{
    struct mk_h2_body_chunk *p = s->first;
    s->first = p->next;
    if (!s->first)
        s->last = NULL;
    count_unread_bytes(s, -(int64_t)p->to);
    mk_mem_free(p);
}

void mk_h2_recv_window_discard(struct mk_h2_stream *s)
{
    while (s->first)
        free_first_chunk(s);
}

/* Bytes that were read count as held until their piece is freed. */
size_t mk_h2_recv_window_read(struct mk_h2_stream *s, char *buf, size_t cap)
{
    struct mk_h2_body_chunk *p = s->first;
    if (!p)
        return 0;
    size_t n = mk_min(cap, p->to - p->from);
    memcpy(buf, p->bytes + p->from, n);
    p->from += (uint32_t)n;
    if (p->from == p->to) {
        free_first_chunk(s);
        mk_h2_recv_window_mark_changed(s);
    }
    return n;
}

/* ---- Windows ---- */

/* Returns the window that the stream could use. A tunnel may be open for hours with little traffic, so its
 * window grows only after it was used up. */
static uint64_t wanted_window(const struct mk_h2_stream *s)
{
    if (!s->d.x->request.tunnel.p)
        return s->announced;
    return s->d.received < s->window_size ? s->window_size : 2 * (uint64_t)s->window_size;
}

/* Takes at most half of the spare part: the rest is for other streams. */
void mk_h2_recv_window_grow(struct mk_h2_stream *s)
{
    uint64_t to = wanted_window(s);
    if (to > WIDE_WINDOW)
        to = WIDE_WINDOW;
    if (to <= s->window_size)
        return;
    uint32_t by = (uint32_t)mk_min(to - s->window_size, s->h2->spare / 2);
    s->h2->spare -= by;
    s->window_size += by;
    mk_h2_recv_window_mark_changed(s);
}

static void update_stream_window(struct mk_h2_stream *s)
{
    int64_t by = s->window_size - s->receive_window - s->held;
    mk_list_remove(&s->touched);
    if (mk_http_stream_request_received(&s->d)) {
        if (!s->held)
            shrink_window(s);
        return;
    }
    if (by <= 0 || by < s->window_size / 4)
        return; /* not worth a frame yet */
    s->receive_window += by;
    mk_h2_write_window_update(s->h2, s->id, (uint32_t)by);
}

/* Returns everything that has arrived and is not held: body data that was read or discarded, padding, and
 * data of closed streams. */
static void update_connection_window(struct mk_h2 *h2)
{
    int64_t by = (int64_t)h2->conn->service->limits->h2.unread_max - h2->receive_window - h2->held;
    if (by <= 0 || (by < UPDATE_MIN && by < h2->receive_window))
        return;
    h2->receive_window += by;
    mk_h2_write_window_update(h2, 0, (uint32_t)by);
}

void mk_h2_recv_window_send_updates(struct mk_h2 *h2)
{
    MK_LIST_EACH_SAFE (at, &h2->touched)
        update_stream_window(MK_LIST_ENTRY(at, struct mk_h2_stream, touched));
    update_connection_window(h2);
}
