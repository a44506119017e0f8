/* SPDX-License-Identifier: Apache-2.0 */
/* uwsgi codec: names and values with 16-bit little-endian lengths, then the body. */
#include "upstream/codec_cgi.h"

enum { HEADER = 4, SIZE_MAX_BYTES = 0xffff }; /* modifier 1, the size, modifier 2 */

static void append_size(struct mk_buf *out, size_t size)
{
    mk_buf_add_char(out, (char)(size & 0xff));
    mk_buf_add_char(out, (char)(size >> 8 & 0xff));
}

/* A value longer than its length field also exceeds the total size, which is checked below. */
static void append_variable(struct mk_buf *out, mk_str name, mk_str value)
{
    append_size(out, name.len);
    mk_buf_add(out, name);
    append_size(out, value.len);
    mk_buf_add(out, value);
}

static void append_variables(struct mk_buf *out, const struct mk_upstream_request_options *options)
{
    char digits[MK_NUM_MAX];
    mk_str length = mk_codec_cgi_content_length(options, digits);
    if (length.p)
        append_variable(out, MK_STR("CONTENT_LENGTH"), length);
    for (size_t i = 0; i < options->n_headers; i++)
        if (!mk_codec_cgi_is_reserved(options->headers[i].name))
            append_variable(out, options->headers[i].name, options->headers[i].value);
}

static mk_err uwsgi_write_head(struct mk_buf *out, const struct mk_upstream_request_options *options,
                               const char **problem)
{
    size_t begun = out->len;
    mk_err e = mk_codec_cgi_check_request(options, problem);
    if (e)
        return e;
    *problem = MK_CODEC_CGI_INVALID;
    if (mk_codec_cgi_has_nul(options))
        return -EINVAL;
    mk_buf_add(out, mk_str_of("\0\0\0", HEADER));
    append_variables(out, options);
    if (out->failed)
        return 0;
    size_t size = out->len - begun - HEADER;
    out->p[begun + 1] = (char)(size & 0xff);
    out->p[begun + 2] = (char)(size >> 8 & 0xff);
    *problem = "its variables are longer than uwsgi allows, 64 KB";
    return size > SIZE_MAX_BYTES ? -E2BIG : 0;
}

static const struct mk_codec_body_framing *
uwsgi_body_framing(const struct mk_upstream_request_options *options)
{
    (void)options;
    return &mk_codec_plain_frame;
}

const struct mk_codec_ops mk_codec_uwsgi = {
    .is_cgi = true,
    .write_head = uwsgi_write_head,
    .frame = uwsgi_body_framing,
};
