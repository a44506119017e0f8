/* SPDX-License-Identifier: Apache-2.0 */
/* uwsgi: variables with their lengths in two bytes each, the lower one first, then the content. */
#include "upstream/codec_cgi.h"

enum { HEADER = 4, SIZE_MAX_BYTES = 0xffff }; /* modifier 1, the size, modifier 2 */

static void add_size(struct mk_buf *out, size_t size)
{
    mk_buf_add_char(out, (char)(size & 0xff));
    mk_buf_add_char(out, (char)(size >> 8 & 0xff));
}

/* One that is too long for its size is too long for all of them: see below. */
static void add(struct mk_buf *out, mk_str name, mk_str value)
{
    add_size(out, name.len);
    mk_buf_add(out, name);
    add_size(out, value.len);
    mk_buf_add(out, value);
}

static void add_all(struct mk_buf *out, const struct mk_upstream_request_options *ask)
{
    char digits[MK_NUM_MAX];
    mk_str length = mk_codec_cgi_length(ask, digits);
    if (length.p)
        add(out, MK_STR("CONTENT_LENGTH"), length);
    for (size_t i = 0; i < ask->n_fields; i++)
        if (!mk_codec_cgi_is_ours(ask->fields[i].name))
            add(out, ask->fields[i].name, ask->fields[i].value);
}

static mk_err write_head(struct mk_buf *out, const struct mk_upstream_request_options *ask,
                         const char **problem)
{
    size_t begun = out->len;
    mk_err e = mk_codec_cgi_check(ask, problem);
    if (e)
        return e;
    *problem = MK_CODEC_CGI_INVALID;
    if (mk_codec_cgi_has_nul(ask))
        return -EINVAL;
    mk_buf_add(out, mk_str_of("\0\0\0", HEADER));
    add_all(out, ask);
    if (out->failed)
        return 0;
    size_t size = out->len - begun - HEADER;
    out->p[begun + 1] = (char)(size & 0xff);
    out->p[begun + 2] = (char)(size >> 8 & 0xff);
    *problem = "its variables are longer than uwsgi allows, 64 KB";
    return size > SIZE_MAX_BYTES ? -E2BIG : 0;
}

static const struct mk_codec_frame *frame(const struct mk_upstream_request_options *ask)
{
    (void)ask;
    return &mk_codec_plain;
}

const struct mk_codec_ops mk_codec_uwsgi = {
    .is_cgi = true,
    .write_head = write_head,
    .frame = frame,
    .read = mk_codec_read,
    .read_end = mk_codec_read_end,
};
