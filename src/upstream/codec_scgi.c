/* SPDX-License-Identifier: Apache-2.0 */
/* SCGI: a netstring of variables, each name and value with a NUL behind it, then the content. */
#include "upstream/codec_cgi.h"

static void add(struct mk_buf *out, mk_str name, mk_str value)
{
    mk_buf_add(out, name);
    mk_buf_add_char(out, '\0');
    mk_buf_add(out, value);
    mk_buf_add_char(out, '\0');
}

/* CONTENT_LENGTH is there in any case. */
static void add_all(struct mk_buf *out, const struct mk_upstream_request_options *ask)
{
    char digits[MK_NUM_MAX];
    mk_str length = mk_codec_cgi_length(ask, digits);
    add(out, MK_STR("CONTENT_LENGTH"), length.p ? length : MK_STR("0"));
    add(out, MK_STR("SCGI"), MK_STR("1"));
    for (size_t i = 0; i < ask->n_fields; i++)
        if (!mk_codec_cgi_is_ours(ask->fields[i].name))
            add(out, ask->fields[i].name, ask->fields[i].value);
}

/* The length comes first, and is known last. */
static mk_err write_head(struct mk_buf *out, const struct mk_upstream_request_options *ask,
                         const char **problem)
{
    mk_err e = mk_codec_cgi_check(ask, problem);
    struct mk_buf pairs = mk_buf_growing(out->max);
    if (e)
        return e;
    *problem = MK_CODEC_CGI_INVALID;
    if (mk_codec_cgi_has_nul(ask))
        return -EINVAL;
    add_all(&pairs, ask);
    mk_buf_add_num(out, pairs.len);
    mk_buf_add_char(out, ':');
    mk_buf_add(out, mk_buf_str(&pairs));
    mk_buf_add_char(out, ',');
    out->failed |= pairs.failed;
    mk_buf_free(&pairs);
    return 0;
}

static const struct mk_codec_frame *frame(const struct mk_upstream_request_options *ask)
{
    (void)ask;
    return &mk_codec_plain;
}

const struct mk_codec_ops mk_codec_scgi = {
    .is_cgi = true,
    .write_head = write_head,
    .frame = frame,
    .read = mk_codec_read,
    .read_end = mk_codec_read_end,
};
