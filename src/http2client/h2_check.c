/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_check.h"

#include <errno.h>

#include "http2client/h2_codec.h"
#include "http2client/h2_session_write.h"
#include "http2frame/h2_frame.h"
#include "http2frame/hpack.h"

enum { IN_MAX = 64 * 1024, STREAM = 1 };

void mk_h2_check_write(struct mk_buf *out, const struct mk_upstream_server *server, mk_str authority)
{
    const struct mk_upstream_settings *settings = server->upstream->settings;
    mk_h2_session_write_preface(out);
    size_t from = out->len;
    mk_h2_frame_emit_head(out, 0, MK_H2_HEADERS, 0, STREAM);
    mk_hpack_encode(out, MK_STR(":method"),
                    settings->check_method.len ? settings->check_method : MK_STR("GET"));
    mk_hpack_encode(out, MK_STR(":scheme"), server->upstream->check_tls ? MK_STR("https") : MK_STR("http"));
    mk_hpack_encode(out, MK_STR(":path"), settings->check);
    mk_hpack_encode(out, MK_STR(":authority"), authority);
    mk_hpack_encode(out, MK_STR("user-agent"), MK_STR("monkey-health"));
    for (const struct mk_health_header *h = settings->check_headers; h; h = h->next) {
        mk_str value = h->text, name = mk_str_cut(&value, ':');
        mk_hpack_encode(out, name, mk_str_trim(value));
    }
    if (!out->failed)
        mk_h2_frame_write_head(out->p + from, (uint32_t)(out->len - from - MK_H2_FRAME_HEAD), MK_H2_HEADERS,
                               MK_H2_END_HEADERS | MK_H2_END_STREAM, STREAM);
}

static int on_header(void *ctx, mk_str name, mk_str value)
{
    struct mk_upstream_http2_check *check = ctx;
    uint64_t status;
    if (mk_str_eq(name, MK_STR(":status")) && mk_num_parse(value, &status) && status >= 200 && status <= 599)
        check->status = (unsigned)status;
    return 0;
}

/* Handles a complete frame. A check needs the first header block only: interim responses precede it. */
static int handle_frame(struct mk_upstream_http2_check *check, const struct mk_h2_frame *f, mk_str payload)
{
    if (mk_h2_frame_check(f) || f->type == MK_H2_GOAWAY || f->type == MK_H2_RST_STREAM)
        return -EPROTO;
    if (f->type != MK_H2_HEADERS)
        return 0;
    if (!(f->flags & MK_H2_END_HEADERS) || !mk_h2_frame_unpad(f, &payload))
        return -EPROTO;
    int e = mk_hpack_decode(check->decoder, payload, on_header, check);
    return e == -EBADMSG ? -EPROTO : e ? e : check->status != 0;
}

int mk_h2_check_read(struct mk_upstream_http2_check *check, mk_str bytes)
{
    int e = 0;
    if (!check->decoder) {
        check->decoder = mk_hpack_decoder_new();
        check->in = mk_buf_growing(IN_MAX);
    }
    mk_buf_add(&check->in, bytes);
    if (!check->decoder || check->in.failed)
        return -ENOMEM;
    while (!e && check->in.len >= MK_H2_FRAME_HEAD) {
        mk_str in = mk_buf_str(&check->in);
        struct mk_h2_frame f = mk_h2_frame_parse(in);
        size_t len = MK_H2_FRAME_HEAD + (size_t)f.length;
        if (f.length > MK_H2_FRAME_MAX)
            return -EPROTO;
        if (in.len < len)
            return 0;
        e = handle_frame(check, &f, mk_str_of(in.p + MK_H2_FRAME_HEAD, f.length));
        mk_buf_consume(&check->in, len);
    }
    return e;
}

void mk_h2_check_free(struct mk_upstream_http2_check *check)
{
    mk_hpack_decoder_free(check->decoder);
    mk_buf_free(&check->in);
    *check = (struct mk_upstream_http2_check){0};
}
