/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_body.h"

#include <errno.h>

enum {
    TEXT_MAX = 16 * 1024,
    ARRIVED_MAX = 2048, /* part of a streamed body that is sent together with the head */
};

/* ---- Receiving ---- */

static bool body_is_streamed(const struct mk_request_body *b)
{
    bool wants_stream = b->mode == MK_REQUEST_BODY_STREAM ||
                        (b->mode == MK_REQUEST_BODY_BUFFER_SMALL && b->length == MK_LENGTH_UNKNOWN);
    return (wants_stream || b->is_held) && b->upgrade == MK_REQUEST_BODY_NO_UPGRADE;
}

/* The number of bytes to buffer in `text`. Before an upgrade, the whole body is buffered, because the tunnel
 * starts at its end. */
static size_t body_text_size(const struct mk_request_body *b)
{
    if (body_is_streamed(b))
        return 0;
    return b->length == MK_LENGTH_UNKNOWN ? TEXT_MAX : b->length <= TEXT_MAX ? (size_t)b->length : 0;
}

bool mk_request_body_init(struct mk_request_body *b)
{
    b->length = mk_request_length(b->request);
    if (b->length > TEXT_MAX)
        b->upgrade = MK_REQUEST_BODY_NO_UPGRADE; /* the body is too long to be buffered */
    b->cap = body_text_size(b);
    b->text = b->cap ? mk_request_alloc(b->request, b->cap) : NULL;
    return b->text || !b->cap;
}

/* Cancels the upgrade if the body does not fit in `text`. The request is then sent without the upgrade. */
static int body_check_upgrade(struct mk_request_body *b)
{
    char beyond[1];
    ssize_t n = b->is_complete ? mk_request_read(b->request, beyond, sizeof beyond) : -E2BIG;
    if (n < 0 && n != -E2BIG)
        return (int)n;
    if (n)
        b->upgrade = MK_REQUEST_BODY_NO_UPGRADE;
    return 0;
}

static int body_receive_text(struct mk_request_body *b)
{
    bool has_length = b->length != MK_LENGTH_UNKNOWN;
    while (b->len < b->cap) {
        ssize_t n = mk_request_read(b->request, b->text + b->len, b->cap - b->len);
        if (n < 0 || (n == 0 && has_length))
            return n ? (int)n : -EBADMSG;
        if (n == 0)
            break;
        b->len += (size_t)n;
    }
    b->is_complete = has_length || b->len < b->cap;
    return b->upgrade == MK_REQUEST_BODY_WANTS_UPGRADE ? body_check_upgrade(b) : 0;
}

static int body_receive_spool(struct mk_request_body *b)
{
    int e = mk_spool_request(b->request, 0, &b->spool);
    b->is_complete = e == 0;
    return e;
}

/* Reads the part of a streamed body that has arrived, often all of it, so that it is sent with the head instead
 * of in the next iteration of the loop. A client that waits for 100 Continue has sent nothing, and reading would
 * make the server send that response. */
static int body_receive_arrived(struct mk_request_body *b)
{
    char arrived[ARRIVED_MAX];
    ssize_t n = 1;
    if (b->is_held || mk_request_header(b->request, MK_STR("Expect")).p)
        return 0;
    while (n > 0 && b->len < sizeof arrived) {
        n = mk_request_read(b->request, arrived + b->len, sizeof arrived - b->len);
        b->len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 && n != -EAGAIN)
        return (int)n;
    b->is_complete = n == 0;
    if (b->is_complete && b->length != MK_LENGTH_UNKNOWN && b->len != (uint64_t)b->length)
        return -EBADMSG;
    b->text = b->len ? mk_request_alloc(b->request, b->len) : NULL;
    if (b->text)
        memcpy(b->text, arrived, b->len);
    return b->len && !b->text ? -ENOMEM : 0;
}

int mk_request_body_receive(struct mk_request_body *b)
{
    if (b->length && body_is_streamed(b))
        return body_receive_arrived(b);
    bool has_more = b->mode == MK_REQUEST_BODY_BUFFER && b->length;
    int e = b->cap && !b->spool ? body_receive_text(b) : 0;
    return e || b->is_complete || !has_more ? e : body_receive_spool(b);
}

/* ---- Sending ---- */

static ssize_t body_read_text(struct mk_request_body *b, char *buf, size_t cap)
{
    mk_str piece = mk_str_first(mk_str_of(b->text + b->sent, b->len - b->sent), cap);
    memcpy(buf, piece.p, piece.len);
    b->sent += piece.len;
    return (ssize_t)piece.len;
}

static ssize_t body_read_spool(struct mk_request_body *b, char *buf, size_t cap)
{
    ssize_t n = mk_spool_read(b->spool, buf, cap, b->spool_sent);
    if (n > 0)
        b->spool_sent += (uint64_t)n;
    return n;
}

/* The backend may accept more at any time, but mk_request_read() may be called only when `is_readable`. */
static ssize_t body_pull(void *ctx, char *buf, size_t cap)
{
    struct mk_request_body *b = ctx;
    if (b->upgrade == MK_REQUEST_BODY_WANTS_UPGRADE)
        return -EAGAIN;
    if (b->sent < b->len)
        return body_read_text(b, buf, cap);
    if (b->is_complete)
        return b->spool ? body_read_spool(b, buf, cap) : 0;
    if (b->is_readable)
        return mk_request_read(b->request, buf, cap);
    mk_request_resume(b->request);
    return -EAGAIN;
}

static bool body_rewind(void *ctx)
{
    struct mk_request_body *b = ctx;
    b->sent = 0;
    b->spool_sent = 0;
    return true;
}

static bool body_trailer_at(void *ctx, size_t i, mk_str *name, mk_str *value)
{
    struct mk_request_body *b = ctx;
    for (size_t at = 0; b->sends_trailer && mk_request_trailer_at(b->request, at, name, value); at++)
        if (b->sends_trailer(b, *name) && i-- == 0)
            return true;
    return false;
}

static const struct mk_upstream_request_body complete = {
    .source = {.read = body_pull}, .rewind = body_rewind, .trailer_at = body_trailer_at};
static const struct mk_upstream_request_body streamed = {.source = {.read = body_pull},
                                                         .trailer_at = body_trailer_at};

/* Passes the buffered body as text. The body source provides only the tunnel data after the upgrade. */
static void body_attach_tunnel(struct mk_request_body *b, struct mk_upstream_request_options *options)
{
    if (b->is_complete)
        options->body = mk_str_of(b->text, b->len);
    options->body_source = &streamed;
    options->body_source_ctx = b;
    b->len = b->sent = 0;
    b->is_complete = false;
}

void mk_request_body_attach(struct mk_request_body *b, struct mk_upstream_request_options *options)
{
    mk_str name, value;
    bool has_trailers = b->is_complete && body_trailer_at(b, 0, &name, &value);
    if (b->upgrade == MK_REQUEST_BODY_WANTS_UPGRADE) {
        body_attach_tunnel(b, options);
        return;
    }
    options->length = b->length;
    options->expects_continue = b->is_held;
    bool is_streamed = body_is_streamed(b); /* its framing does not depend on timing */
    if (b->is_complete && !has_trailers && !is_streamed)
        options->length = (int64_t)(b->len + (b->spool ? mk_spool_length(b->spool) : 0));
    if (b->is_complete && !b->spool && !has_trailers && options->length != MK_LENGTH_UNKNOWN) {
        options->body = mk_str_of(b->text, b->len);
    } else if (options->length) {
        options->body_source = b->is_complete ? &complete : &streamed;
        options->body_source_ctx = b;
    }
}
