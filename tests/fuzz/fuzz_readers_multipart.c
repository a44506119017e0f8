/* SPDX-License-Identifier: Apache-2.0 */
/* Parses multipart/form-data; the first line is the Content-Type. The parts are the same whether the body
 * arrives at once or byte by byte. */
#include <errno.h>
#include <monkey/multipart.h>

#include "base/assert.h"
#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_part(void *ctx, const struct mk_multipart_part *p)
{
    MK_ASSERT(p->name.p && p->name.len <= 20 && p->file_name.len <= 20);
    mk_buf_addf(ctx, "<%.*s|%.*s|%.*s>", MK_STR_ARG(p->name), MK_STR_ARG(p->file_name),
                MK_STR_ARG(p->content_type));
    char buffer[128];
    struct mk_buf clean = mk_buf_fixed(buffer, sizeof buffer);
    mk_file_name_clean(&clean, p->file_name);
    MK_ASSERT(!clean.failed && clean.len && buffer[0] != '.' && !memchr(buffer, '/', clean.len));
    return 0;
}

static int on_data(void *ctx, mk_str bytes)
{
    MK_ASSERT(bytes.len);
    mk_buf_add(ctx, bytes);
    return 0;
}

static int on_end(void *ctx)
{
    mk_buf_add(ctx, MK_STR("</>"));
    return 0;
}

static int parse_in_pieces(mk_str text, mk_str boundary, size_t piece, struct mk_buf *out)
{
    static const struct mk_multipart_ops ops = {.part = on_part, .data = on_data, .end = on_end};
    static const struct mk_multipart_limits limits = {
        .parts = 8, .head = 300, .name = 20, .file = 400, .value = 200};
    struct mk_multipart *m = mk_multipart_new(boundary, &limits, &ops, out);
    int e = 0;
    for (; text.len && !e; text = mk_str_skip(text, piece))
        e = mk_multipart_feed(m, mk_str_first(text, piece));
    e = e ? e : mk_multipart_end(m);
    MK_ASSERT(e == 0 || e == -EBADMSG || e == -EMSGSIZE);
    mk_multipart_free(m);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of((const char *)data, size), type = mk_str_cut(&text, '\n'), boundary;
    if (!text.p || !mk_multipart_boundary(type, &boundary))
        return 0;
    struct mk_buf whole = mk_buf_growing(1 << 24), bytes = mk_buf_growing(1 << 24);
    int e = parse_in_pieces(text, boundary, 4096, &whole);
    MK_ASSERT(parse_in_pieces(text, boundary, 1, &bytes) == e);
    MK_ASSERT(e || mk_str_eq(mk_buf_str(&whole), mk_buf_str(&bytes)));
    mk_buf_free(&whole);
    mk_buf_free(&bytes);
    return 0;
}
