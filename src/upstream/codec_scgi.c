/* SPDX-License-Identifier: Apache-2.0 */
/* SCGI codec: a netstring of NUL-terminated names and values, then the body. */
#include "upstream/codec_cgi.h"

static void append_variable(struct mk_buf *out, mk_str name, mk_str value)
{
    mk_buf_add(out, name);
    mk_buf_add_char(out, '\0');
    mk_buf_add(out, value);
    mk_buf_add_char(out, '\0');
}

/* SCGI requires CONTENT_LENGTH as the first variable, even if the body is empty. */
static void append_variables(struct mk_buf *out, const struct mk_upstream_request_options *options)
{
    char digits[MK_NUM_MAX];
    mk_str length = mk_codec_cgi_content_length(options, digits);
    append_variable(out, MK_STR("CONTENT_LENGTH"), length.p ? length : MK_STR("0"));
    append_variable(out, MK_STR("SCGI"), MK_STR("1"));
    for (size_t i = 0; i < options->n_headers; i++)
        if (!mk_codec_cgi_is_reserved(options->headers[i].name))
            append_variable(out, options->headers[i].name, options->headers[i].value);
}

/* Writes the variables to a separate buffer first, because their length precedes them in the netstring. */
static mk_err scgi_write_head(struct mk_buf *out, const struct mk_upstream_request_options *options,
                              const char **problem)
{
    mk_err e = mk_codec_cgi_check_request(options, problem);
    struct mk_buf pairs = mk_buf_growing(out->max);
    if (e)
        return e;
    *problem = MK_CODEC_CGI_INVALID;
    if (mk_codec_cgi_has_nul(options))
        return -EINVAL;
    append_variables(&pairs, options);
    mk_buf_add_num(out, pairs.len);
    mk_buf_add_char(out, ':');
    mk_buf_add(out, mk_buf_str(&pairs));
    mk_buf_add_char(out, ',');
    out->failed |= pairs.failed;
    mk_buf_free(&pairs);
    return 0;
}

static const struct mk_codec_body_framing *
scgi_body_framing(const struct mk_upstream_request_options *options)
{
    (void)options;
    return &mk_codec_plain_frame;
}

const struct mk_codec_ops mk_codec_scgi = {
    .is_cgi = true,
    .write_head = scgi_write_head,
    .frame = scgi_body_framing,
};
