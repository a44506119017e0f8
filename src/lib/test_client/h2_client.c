/* SPDX-License-Identifier: Apache-2.0 */
/* In-memory HTTP/2 client that makes one request at a time: mk_test_client_request() over HTTP/2. */
#include "lib/test_client/h2_client.h"

#include <monkey/http.h>

#include "base/mem.h"
#include "base/num.h"
#include "connection/http2.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"

enum { BLOCK_MAX = 1 << 20 };

struct mk_http2_client {
    struct mk_hpack_decoder *decoder;
    uint32_t stream;            /* stream of the request; 0: none yet */
    uint32_t window_first;      /* initial window of a stream */
    int64_t window, window_all; /* send windows of the stream and the connection */
    mk_str content;             /* request body not sent yet; owned by the caller */
    struct mk_buf block;        /* header block being assembled */
    bool ends_with_block;       /* END_STREAM was set with the block */
    bool in_block;
    bool has_head; /* final response head received */
    bool is_whole;
};

/* Context for the processing of received frames. */
struct frame_reader {
    struct mk_http2_client *client;
    struct mk_buf *out;
    struct mk_http2_client_response *answer;
};

static void free_client(struct mk_http2_client *c)
{
    if (!c)
        return;
    mk_hpack_decoder_free(c->decoder);
    mk_buf_free(&c->block);
    mk_mem_free(c);
}

static struct mk_http2_client *new_client(void)
{
    struct mk_http2_client *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->decoder = mk_hpack_decoder_new();
    c->block = mk_buf_growing(BLOCK_MAX);
    c->window_first = MK_H2_WINDOW;
    c->window_all = MK_H2_WINDOW;
    if (c->decoder)
        return c;
    free_client(c);
    return NULL;
}

/* ---- Sending ---- */

static void write_preface(struct mk_buf *out)
{
    mk_buf_add(out, MK_H2_PREFACE);
    mk_h2_frame_emit_head(out, 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(out, MK_H2_ENABLE_PUSH, 0);
}

static void write_header_block(struct mk_buf *out, mk_str block, uint32_t stream, bool ends)
{
    enum mk_h2_type type = MK_H2_HEADERS;
    unsigned flags = ends ? MK_H2_END_STREAM : 0;
    do {
        mk_str part = mk_str_first(block, mk_min(block.len, MK_H2_FRAME_MAX));
        block = mk_str_skip(block, part.len);
        mk_h2_frame_emit_head(out, (uint32_t)part.len, type, flags | (block.len ? 0 : MK_H2_END_HEADERS),
                              stream);
        mk_buf_add(out, part);
        type = MK_H2_CONTINUATION;
        flags = 0;
    } while (block.len);
}

/* Writes as much data as the windows allow. */
static void write_data_frames(struct mk_http2_client *c, struct mk_buf *out)
{
    while (c->content.len && c->window > 0 && c->window_all > 0) {
        size_t n = mk_min(c->content.len, MK_H2_FRAME_MAX);
        n = mk_min(n, mk_min((size_t)c->window, (size_t)c->window_all));
        mk_h2_frame_emit_head(out, (uint32_t)n, MK_H2_DATA, n == c->content.len ? MK_H2_END_STREAM : 0,
                              c->stream);
        mk_buf_add(out, mk_str_first(c->content, n));
        c->content = mk_str_skip(c->content, n);
        c->window -= (int64_t)n;
        c->window_all -= (int64_t)n;
    }
}

static void encode_headers(struct mk_buf *block, const struct mk_http2_client_request *q)
{
    mk_str host = MK_STR("localhost");
    bool has_length = !q->content.p;
    for (size_t i = 0; i < q->n; i++) {
        if (mk_str_eq_nocase(q->fields[i].name, MK_STR("Host")))
            host = q->fields[i].value;
        has_length |= mk_str_eq_nocase(q->fields[i].name, MK_STR("Content-Length"));
    }
    mk_hpack_encode(block, MK_STR(":method"), q->method);
    mk_hpack_encode(block, MK_STR(":scheme"), MK_STR("http"));
    mk_hpack_encode(block, MK_STR(":authority"), host);
    mk_hpack_encode(block, MK_STR(":path"), q->target);
    if (!has_length)
        mk_hpack_encode_num(block, MK_STR("Content-Length"), q->content.len);
    for (size_t i = 0; i < q->n; i++)
        if (!mk_str_eq_nocase(q->fields[i].name, MK_STR("Host")))
            mk_hpack_encode(block, q->fields[i].name, q->fields[i].value);
}

static mk_err write_request(struct mk_http2_client *c, const struct mk_http2_client_request *q,
                            struct mk_buf *out)
{
    struct mk_buf block = mk_buf_growing(BLOCK_MAX);
    if (!c->stream)
        write_preface(out);
    c->stream += c->stream ? 2 : 1;
    c->window = c->window_first;
    c->content = q->content;
    c->has_head = c->is_whole = false;
    encode_headers(&block, q);
    write_header_block(out, mk_buf_str(&block), c->stream, !q->content.len);
    write_data_frames(c, out);
    bool failed = block.failed || out->failed;
    mk_buf_free(&block);
    return failed ? -ENOMEM : 0;
}

/* ---- Receiving ---- */

static int on_header(void *ctx, mk_str name, mk_str value)
{
    const struct frame_reader *h = ctx;
    struct mk_http2_client_response *a = h->answer;
    uint64_t status;
    if (h->client->has_head)
        return 0; /* a trailer */
    if (!mk_str_eq(name, MK_STR(":status"))) {
        mk_buf_addf(a->head, "%.*s: %.*s\r\n", MK_STR_ARG(name), MK_STR_ARG(value));
        return 0;
    }
    a->status = mk_num_parse(value, &status) && status < 1000 ? (unsigned)status : 0;
    mk_buf_clear(a->head);
    return 0;
}

static mk_err finish_header_block(const struct frame_reader *h)
{
    struct mk_http2_client *c = h->client;
    mk_err e = mk_hpack_decode(c->decoder, mk_buf_str(&c->block), on_header, (void *)(uintptr_t)h);
    mk_buf_clear(&c->block);
    c->in_block = false;
    if (!e && h->answer->status < 100)
        return -EBADMSG;
    c->has_head |= h->answer->status >= 200;
    c->is_whole |= c->ends_with_block && c->has_head;
    return e;
}

static mk_err append_header_block(const struct frame_reader *h, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_http2_client *c = h->client;
    if (f->stream != c->stream || (f->type == MK_H2_CONTINUATION) != c->in_block ||
        (f->type == MK_H2_HEADERS && !mk_h2_frame_unpad(f, &payload)))
        return -EBADMSG;
    if (f->type == MK_H2_HEADERS)
        c->ends_with_block = f->flags & MK_H2_END_STREAM;
    c->in_block = true;
    mk_buf_add(&c->block, payload);
    if (c->block.failed)
        return -ENOMEM;
    return f->flags & MK_H2_END_HEADERS ? finish_header_block(h) : 0;
}

/* Consumes the data, and returns its size to the window. */
static mk_err handle_data(const struct frame_reader *h, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_http2_client *c = h->client;
    if (f->length)
        mk_h2_frame_emit_window_update(h->out, 0, f->length);
    if (f->stream != c->stream)
        return f->stream < c->stream ? 0 : -EBADMSG;
    if (!c->has_head || c->is_whole || !mk_h2_frame_unpad(f, &payload))
        return -EBADMSG;
    mk_buf_add(h->answer->content, payload);
    c->is_whole = f->flags & MK_H2_END_STREAM;
    if (f->length && !c->is_whole)
        mk_h2_frame_emit_window_update(h->out, f->stream, f->length);
    return 0;
}

static void handle_settings(const struct frame_reader *h, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_http2_client *c = h->client;
    unsigned id;
    uint32_t value;
    if (f->flags & MK_H2_ACK)
        return;
    while (mk_h2_frame_next_setting(&payload, &id, &value))
        if (id == MK_H2_INITIAL_WINDOW_SIZE) {
            c->window += (int64_t)value - c->window_first;
            c->window_first = value;
        }
    mk_h2_frame_emit_head(h->out, 0, MK_H2_SETTINGS, MK_H2_ACK, 0);
    write_data_frames(c, h->out);
}

static void handle_window_update(const struct frame_reader *h, const struct mk_h2_frame *f, mk_str payload)
{
    struct mk_http2_client *c = h->client;
    if (f->stream == 0)
        c->window_all += mk_h2_frame_read_u32(payload);
    else if (f->stream == c->stream)
        c->window += mk_h2_frame_read_u32(payload);
    write_data_frames(c, h->out);
}

/* The server has not processed requests on streams above the last stream of the GOAWAY frame. */
static mk_err handle_goaway(const struct mk_http2_client *c, mk_str payload)
{
    return (mk_h2_frame_read_u32(payload) & MK_H2_STREAM_MAX) < c->stream ? -ECONNRESET : 0;
}

static mk_err handle_frame(const struct frame_reader *h, const struct mk_h2_frame *f, mk_str payload)
{
    const struct mk_http2_client *c = h->client;
    if (c->in_block && f->type != MK_H2_CONTINUATION)
        return -EBADMSG;
    switch (f->type) {
    case MK_H2_HEADERS:
    case MK_H2_CONTINUATION:
        return append_header_block(h, f, payload);
    case MK_H2_DATA:
        return handle_data(h, f, payload);
    case MK_H2_RST_STREAM:
        return f->stream == c->stream ? -ECONNRESET : 0;
    case MK_H2_GOAWAY:
        return handle_goaway(c, payload);
    case MK_H2_SETTINGS:
        handle_settings(h, f, payload);
        return 0;
    case MK_H2_WINDOW_UPDATE:
        handle_window_update(h, f, payload);
        return 0;
    case MK_H2_PING:
        if (!(f->flags & MK_H2_ACK))
            mk_h2_frame_emit_ping(h->out, true, payload);
        return 0;
    default:
        return 0;
    }
}

/* Stops at the frame that ends the response: later frames are for the next call. */
static int read_response_frames(struct mk_http2_client *c, mk_str *in, struct mk_buf *out,
                                struct mk_http2_client_response *answer)
{
    const struct frame_reader h = {.client = c, .out = out, .answer = answer};
    while (!c->is_whole && in->len >= MK_H2_FRAME_HEAD) {
        struct mk_h2_frame f = mk_h2_frame_parse(*in);
        if (mk_h2_frame_check(&f))
            return -EBADMSG;
        if (in->len < MK_H2_FRAME_HEAD + f.length)
            break;
        mk_err e = handle_frame(&h, &f, mk_str_first(mk_str_skip(*in, MK_H2_FRAME_HEAD), f.length));
        *in = mk_str_skip(*in, MK_H2_FRAME_HEAD + f.length);
        if (e)
            return e;
    }
    if (out->failed || answer->head->failed || answer->content->failed)
        return -ENOMEM;
    return c->is_whole;
}

const struct mk_http2_client_ops mk_h2_client_ops = {
    .create = new_client, .free = free_client, .ask = write_request, .hear = read_response_frames};
