/* SPDX-License-Identifier: Apache-2.0 */
/* A strict HTTP/2 client: it writes its frames into a buffer and validates everything that it receives
 * against RFC 9113: frames, windows, the order of frames on a stream, header fields. Independent of cmocka:
 * fuzz targets also use it. */
#ifndef MK_UNIT_H2_CLIENT_H
#define MK_UNIT_H2_CLIENT_H

#include <stdio.h>

#include "base/assert.h"
#include "base/num.h"
#include "connection/http2.h"
#include "http/header.h"
#include "http/scan.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"

enum { H2_STREAMS = 256, H2_FIELDS = 160 * 1024, H2_CONTENT = 1 << 25, H2_LOG = 1 << 14, H2_PENDING = 1024 };

struct h2_stream {
    uint32_t id;
    bool is_head;       /* the request was HEAD */
    unsigned n_interim; /* interim responses received */
    unsigned status;    /* status of the final response; 0: not received yet */
    bool ended, reset;
    bool left;         /* the client has reset the stream and ignores later frames */
    bool has_sent_end; /* the client has sent END_STREAM */
    enum mk_h2_error error;
    uint64_t length; /* Content-Length; UINT64_MAX: none */
    int64_t window;  /* receive window: bytes that the server may send */
    int64_t upload;  /* send window: bytes that the client may send */
    bool has_trailers;
    struct mk_buf fields; /* "name: value\n" */
    struct mk_buf content;
};

struct h2_frame_log {
    uint8_t type, flags;
    uint32_t length, stream;
};

/* SETTINGS that the client has sent, and that take effect when the server acknowledges them. */
struct h2_pending {
    int64_t by;
    unsigned n_streams;
};

struct h2_client {
    struct mk_hpack_decoder *decoder;
    struct h2_stream at[H2_STREAMS];
    unsigned n;
    int64_t window, upload, initial, initial_upload;
    uint32_t highest; /* highest stream ID that the client has opened */
    struct h2_pending pending[H2_PENDING];
    unsigned n_pending;
    struct h2_frame_log log[H2_LOG];
    unsigned n_log;

    struct mk_buf block;
    uint32_t block_stream;
    bool block_ends;

    unsigned n_settings, n_pongs, n_pings, n_goaways;
    char ping[8]; /* payload of the last PING */
    uint32_t streams_max, last_stream;
    enum mk_h2_error error; /* error of the last GOAWAY */
    const char *why;        /* first protocol violation received; NULL: none */
    uint32_t where;         /* stream of the violation */
};

static inline void h2_init(struct h2_client *c)
{
    memset(c, 0, sizeof *c);
    c->decoder = mk_hpack_decoder_new();
    c->window = c->upload = c->initial = c->initial_upload = MK_H2_WINDOW;
    c->streams_max = UINT32_MAX;
    c->last_stream = MK_H2_STREAM_MAX;
}

static inline void h2_fini(struct h2_client *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        mk_buf_free(&c->at[i].fields);
        mk_buf_free(&c->at[i].content);
    }
    mk_buf_free(&c->block);
    mk_hpack_decoder_free(c->decoder);
    c->n = 0;
    c->decoder = NULL;
}

static inline struct h2_stream *h2_find(struct h2_client *c, uint32_t id)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->at[i].id == id)
            return &c->at[i];
    return NULL;
}

static inline bool h2_bad(struct h2_client *c, uint32_t stream, const char *why)
{
    if (!c->why) {
        c->why = why;
        c->where = stream;
    }
    return false;
}

/* ---- Sending frames ---- */

static inline void h2_send_frame(struct mk_buf *out, unsigned type, unsigned flags, uint32_t stream,
                                 mk_str payload)
{
    mk_h2_frame_emit_head(out, (uint32_t)payload.len, (enum mk_h2_type)type, flags, stream);
    mk_buf_add(out, payload);
}

static inline void h2_send_preface(struct h2_client *c, struct mk_buf *out)
{
    mk_buf_add(out, MK_H2_PREFACE);
    h2_send_frame(out, MK_H2_SETTINGS, 0, 0, MK_STR(""));
    MK_ASSERT(c->n_pending < H2_PENDING);
    c->pending[c->n_pending++] = (struct h2_pending){0, 0};
}

static inline void h2_send_setting(struct h2_client *c, struct mk_buf *out, enum mk_h2_setting id,
                                   uint32_t value)
{
    struct h2_pending p = {0, c->n};
    mk_h2_frame_emit_head(out, 6, MK_H2_SETTINGS, 0, 0);
    mk_h2_frame_emit_setting(out, id, value);
    if (id == MK_H2_INITIAL_WINDOW_SIZE) {
        p.by = (int64_t)value - c->initial;
        c->initial = value;
    }
    MK_ASSERT(c->n_pending < H2_PENDING);
    c->pending[c->n_pending++] = p;
}

static inline void h2_send_window_update(struct h2_client *c, struct mk_buf *out, uint32_t stream,
                                         uint32_t by)
{
    struct h2_stream *s = h2_find(c, stream);
    mk_h2_frame_emit_window_update(out, stream, by);
    if (!stream)
        c->window += by;
    else if (s)
        s->window += by;
}

static inline void h2_send_reset(struct h2_client *c, struct mk_buf *out, uint32_t stream,
                                 enum mk_h2_error error)
{
    struct h2_stream *s = h2_find(c, stream);
    mk_h2_frame_emit_rst_stream(out, stream, error);
    if (s)
        s->left = s->has_sent_end = true;
}

/* Registers a stream on which a response is expected. */
static inline struct h2_stream *h2_expect(struct h2_client *c, uint32_t id)
{
    struct h2_stream *s = h2_find(c, id);
    if (s)
        return s;
    MK_ASSERT(c->n < H2_STREAMS);
    s = &c->at[c->n++];
    *s =
        (struct h2_stream){.id = id, .window = c->initial, .upload = c->initial_upload, .length = UINT64_MAX};
    s->fields = mk_buf_growing(H2_FIELDS);
    s->content = mk_buf_growing(H2_CONTENT);
    if (id > c->highest)
        c->highest = id;
    return s;
}

/* Encodes "name: value\n..." as a header block. */
static inline void h2_pack(struct mk_buf *block, const char *fields)
{
    mk_str rest = mk_str_from_c(fields);
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        size_t n = mk_str_find(mk_str_skip(line, 1), ':') + 1; /* names may begin with a colon */
        mk_hpack_encode(block, mk_str_first(line, n), mk_str_skip(line, n + 2));
    }
}

/* Sends arbitrary header fields as a single HEADERS frame. */
static inline struct h2_stream *h2_send_headers(struct h2_client *c, struct mk_buf *out, uint32_t id,
                                                unsigned flags, const char *fields)
{
    struct mk_buf block = mk_buf_growing(1 << 20);
    struct h2_stream *s = h2_expect(c, id);
    h2_pack(&block, fields);
    h2_send_frame(out, MK_H2_HEADERS, flags | MK_H2_END_HEADERS, id, mk_buf_str(&block));
    s->has_sent_end |= flags & MK_H2_END_STREAM;
    mk_buf_free(&block);
    return s;
}

/* Sends a request; `more` has the format of h2_pack(). */
static inline struct h2_stream *h2_send_request(struct h2_client *c, struct mk_buf *out, uint32_t id,
                                                const char *method, const char *target, bool ends,
                                                const char *more)
{
    char fields[8192];
    snprintf(fields, sizeof fields, ":method: %s\n:scheme: http\n:authority: a\n:path: %s\n%s", method,
             target, more);
    struct h2_stream *s = h2_send_headers(c, out, id, ends ? MK_H2_END_STREAM : 0, fields);
    s->is_head = strcmp(method, "HEAD") == 0;
    return s;
}

static inline struct h2_stream *h2_get(struct h2_client *c, struct mk_buf *out, uint32_t id,
                                       const char *target)
{
    return h2_send_request(c, out, id, "GET", target, true, "");
}

static inline void h2_send_data(struct h2_client *c, struct mk_buf *out, uint32_t id, mk_str data, bool ends)
{
    struct h2_stream *s = h2_find(c, id);
    h2_send_frame(out, MK_H2_DATA, ends ? MK_H2_END_STREAM : 0, id, data);
    c->upload -= (int64_t)data.len;
    if (!s)
        return;
    s->upload -= (int64_t)data.len;
    s->has_sent_end |= ends;
}

/* ---- Receiving header blocks ---- */

struct h2_reading {
    struct h2_client *c;
    struct h2_stream *s;
    unsigned status;
    bool is_trailers, in_regular, has_date, has_server, has_type;
};

static inline bool h2_is_of_connection(mk_str name)
{
    static const char *const no[] = {"connection", "keep-alive", "proxy-connection", "transfer-encoding",
                                     "upgrade"};
    for (size_t i = 0; i < MK_LEN(no); i++)
        if (mk_str_eq(name, mk_str_from_c(no[i])))
            return true;
    return false;
}

static inline bool h2_receive_status(struct h2_reading *r, mk_str name, mk_str value)
{
    uint64_t status;
    if (r->in_regular || r->is_trailers || r->status || !mk_str_eq(name, MK_STR(":status")))
        return h2_bad(r->c, r->s->id, "a pseudo field out of place");
    if (value.len != 3 || !mk_num_parse(value, &status) || status < 100 || status > 599)
        return h2_bad(r->c, r->s->id, "the status");
    r->status = (unsigned)status;
    return true;
}

static inline bool h2_twice(bool *seen)
{
    bool before = *seen;
    *seen = true;
    return before;
}

static inline bool h2_receive_known_header(struct h2_reading *r, mk_str name, mk_str value)
{
    bool twice = false;
    if (mk_str_eq(name, MK_STR("date")))
        twice = h2_twice(&r->has_date);
    if (mk_str_eq(name, MK_STR("server")))
        twice = h2_twice(&r->has_server);
    if (mk_str_eq(name, MK_STR("content-type")))
        twice = h2_twice(&r->has_type);
    if (mk_str_eq(name, MK_STR("content-length")))
        twice = r->s->length != UINT64_MAX || !mk_num_parse(value, &r->s->length);
    return !twice || h2_bad(r->c, r->s->id, "a field that is there twice");
}

static inline int h2_on_field(void *ctx, mk_str name, mk_str value)
{
    struct h2_reading *r = ctx;
    if (name.len && name.p[0] == ':') {
        (void)h2_receive_status(r, name, value);
        return 0;
    }
    r->in_regular = true;
    if (!mk_is_token(name) || mk_scan_has_capitals(name) || !mk_is_header_value(value) ||
        mk_str_trim(value).len != value.len || h2_is_of_connection(name))
        h2_bad(r->c, r->s->id, "a field");
    (void)h2_receive_known_header(r, name, value);
    mk_buf_add(&r->s->fields, name);
    mk_buf_add(&r->s->fields, MK_STR(": "));
    mk_buf_add(&r->s->fields, value);
    mk_buf_add(&r->s->fields, MK_STR("\n"));
    return 0;
}

static inline bool h2_receive_end(struct h2_client *c, struct h2_stream *s)
{
    bool none = s->is_head || s->status == 204 || s->status == 304;
    s->ended = true;
    if (none && s->content.len)
        return h2_bad(c, s->id, "content where there is none");
    if (!none && s->length != UINT64_MAX && s->length != s->content.len)
        return h2_bad(c, s->id, "content of another length");
    return true;
}

static inline bool h2_receive_response(struct h2_client *c, struct h2_stream *s, const struct h2_reading *r,
                                       bool ends)
{
    if (!r->status)
        return h2_bad(c, s->id, "no status");
    if (r->status < 200) {
        s->n_interim++;
        mk_buf_clear(&s->fields);
        return !ends || h2_bad(c, s->id, "the end with 1xx");
    }
    s->status = r->status;
    if (s->status < 500 && (!r->has_date || !r->has_server))
        return h2_bad(c, s->id, "no Date or no Server");
    return !ends || h2_receive_end(c, s);
}

static inline bool h2_receive_block(struct h2_client *c)
{
    struct h2_stream *s = h2_find(c, c->block_stream);
    struct h2_reading r = {.c = c, .s = s, .is_trailers = s->status != 0};
    mk_err e = mk_hpack_decode(c->decoder, mk_buf_str(&c->block), h2_on_field, &r);
    mk_buf_free(&c->block);
    c->block_stream = 0;
    if (e)
        return h2_bad(c, s->id, "a block that cannot be decoded");
    if (s->left || c->why)
        return !c->why;
    if (!r.is_trailers)
        return h2_receive_response(c, s, &r, c->block_ends);
    s->has_trailers = true;
    return c->block_ends ? h2_receive_end(c, s) : h2_bad(c, s->id, "trailers and no end");
}

/* ---- Receiving frames ---- */

/* Finds the stream of a frame that is valid only on an open stream. */
static inline struct h2_stream *h2_stream_of_frame(struct h2_client *c, uint32_t id)
{
    struct h2_stream *s = h2_find(c, id);
    if (!s)
        h2_bad(c, id, "a frame on an idle stream");
    else if ((s->ended || s->reset) && !s->left)
        h2_bad(c, id, "a frame on a stream that has ended");
    return c->why ? NULL : s;
}

static inline bool h2_receive_headers(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    if (!h2_stream_of_frame(c, f->stream))
        return false;
    if (f->flags & ~(MK_H2_END_HEADERS | MK_H2_END_STREAM))
        return h2_bad(c, f->stream, "flags of HEADERS");
    c->block = mk_buf_growing(1 << 20);
    c->block_stream = f->stream;
    c->block_ends = f->flags & MK_H2_END_STREAM;
    mk_buf_add(&c->block, payload);
    return f->flags & MK_H2_END_HEADERS ? h2_receive_block(c) : true;
}

static inline bool h2_receive_data(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    struct h2_stream *s = h2_stream_of_frame(c, f->stream);
    if (!s)
        return false;
    if (!s->status && !s->left)
        return h2_bad(c, s->id, "content before the head");
    if (f->flags & ~MK_H2_END_STREAM)
        return h2_bad(c, s->id, "flags of DATA");
    c->window -= f->length;
    s->window -= f->length;
    if (f->length && (c->window < 0 || s->window < 0))
        return h2_bad(c, s->id, c->window < 0 ? "beyond the connection's window" : "beyond its window");
    if (s->left)
        return true;
    mk_buf_add(&s->content, payload);
    return f->flags & MK_H2_END_STREAM ? h2_receive_end(c, s) : true;
}

static inline void h2_receive_initial_window(struct h2_client *c, int64_t value)
{
    for (unsigned i = 0; i < c->n; i++)
        c->at[i].upload += value - c->initial_upload;
    c->initial_upload = value;
}

static inline bool h2_receive_settings(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    unsigned id;
    uint32_t value;
    if (f->flags & MK_H2_ACK) {
        if (!c->n_pending)
            return h2_bad(c, 0, "SETTINGS that were never sent are acknowledged");
        for (unsigned i = 0; i < c->pending[0].n_streams; i++)
            c->at[i].window += c->pending[0].by;
        memmove(c->pending, c->pending + 1, --c->n_pending * sizeof c->pending[0]);
        return true;
    }
    while (mk_h2_frame_next_setting(&payload, &id, &value))
        if (id == MK_H2_MAX_CONCURRENT_STREAMS)
            c->streams_max = value;
        else if (id == MK_H2_INITIAL_WINDOW_SIZE)
            h2_receive_initial_window(c, value);
    c->n_settings++;
    return true;
}

static inline bool h2_receive_window_update(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    struct h2_stream *s = h2_find(c, f->stream);
    uint32_t by = mk_h2_frame_read_u32(payload);
    if (!by || by > MK_H2_WINDOW_MAX)
        return h2_bad(c, f->stream, "a window opened by nothing");
    if (f->stream && !s)
        return h2_bad(c, f->stream, "the window of an idle stream");
    int64_t *window = s ? &s->upload : &c->upload;
    *window += by;
    return *window <= MK_H2_WINDOW_MAX || h2_bad(c, f->stream, "a window beyond all bounds");
}

static inline bool h2_receive_reset(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    struct h2_stream *s = h2_find(c, f->stream);
    if (!s) /* lower stream IDs that were skipped are closed (RFC 9113, section 5.1.1) */
        return f->stream < c->highest || h2_bad(c, f->stream, "an idle stream is reset");
    s->error = (enum mk_h2_error)mk_h2_frame_read_u32(payload);
    s->reset = true;
    return true;
}

static inline bool h2_receive_goaway(struct h2_client *c, mk_str payload)
{
    uint32_t last = mk_h2_frame_read_u32(payload);
    if (last > c->last_stream)
        return h2_bad(c, last, "GOAWAY takes back what it said");
    c->last_stream = last;
    c->error = (enum mk_h2_error)mk_h2_frame_read_u32(mk_str_skip(payload, 4));
    c->n_goaways++;
    return true;
}

static inline bool h2_receive_ping(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    memcpy(c->ping, payload.p, 8);
    if (f->flags & MK_H2_ACK)
        c->n_pongs++;
    else
        c->n_pings++;
    return true;
}

static inline bool h2_receive_continuation(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    mk_buf_add(&c->block, payload);
    return f->flags & MK_H2_END_HEADERS ? h2_receive_block(c) : true;
}

static inline bool h2_receive_frame(struct h2_client *c, const struct mk_h2_frame *f, mk_str payload)
{
    enum mk_h2_error error = mk_h2_frame_check(f);
    if (error)
        return h2_bad(c, f->stream, "a malformed frame");
    if (c->n_log == 0 && (f->type != MK_H2_SETTINGS || f->flags))
        return h2_bad(c, f->stream, "it does not begin with SETTINGS");
    if (c->n_goaways && c->error)
        return h2_bad(c, f->stream, "a frame behind the last GOAWAY");
    if ((f->type == MK_H2_CONTINUATION) != (c->block_stream != 0) ||
        (c->block_stream && c->block_stream != f->stream))
        return h2_bad(c, f->stream, "CONTINUATION out of place");
    if (c->n_log < H2_LOG)
        c->log[c->n_log++] = (struct h2_frame_log){f->type, f->flags, f->length, f->stream};
    switch (f->type) {
    case MK_H2_DATA:
        return h2_receive_data(c, f, payload);
    case MK_H2_HEADERS:
        return h2_receive_headers(c, f, payload);
    case MK_H2_RST_STREAM:
        return h2_receive_reset(c, f, payload);
    case MK_H2_SETTINGS:
        return h2_receive_settings(c, f, payload);
    case MK_H2_PING:
        return h2_receive_ping(c, f, payload);
    case MK_H2_GOAWAY:
        return h2_receive_goaway(c, payload);
    case MK_H2_WINDOW_UPDATE:
        return h2_receive_window_update(c, f, payload);
    case MK_H2_CONTINUATION:
        return h2_receive_continuation(c, f, payload);
    default:
        return h2_bad(c, f->stream, "a frame that servers do not send");
    }
}

/* Parses all complete frames of `in`. Returns the number of bytes consumed; c->why describes an error. */
static inline size_t h2_receive(struct h2_client *c, mk_str in)
{
    size_t before = in.len;
    while (!c->why && in.len >= MK_H2_FRAME_HEAD) {
        struct mk_h2_frame f = mk_h2_frame_parse(in);
        if (f.length > MK_H2_FRAME_MAX)
            h2_bad(c, f.stream, "a frame that is too long");
        else if (in.len < MK_H2_FRAME_HEAD + (size_t)f.length)
            break;
        else
            (void)h2_receive_frame(c, &f, mk_str_of(in.p + MK_H2_FRAME_HEAD, f.length));
        in = mk_str_skip(in, MK_H2_FRAME_HEAD + (size_t)f.length);
    }
    return before - in.len;
}

#endif
