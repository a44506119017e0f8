/* SPDX-License-Identifier: Apache-2.0 */
/* FastCGI codec: sends CGI variables and the body in records (see http/fcgi.h). */
#include "upstream/codec_cgi.h"

/* Appends the variables. Returns how many of the NUL bytes written belong to lengths. */
static size_t append_params(struct mk_buf *out, const struct mk_upstream_request_options *options)
{
    char digits[MK_NUM_MAX];
    const struct mk_header length = {MK_STR("CONTENT_LENGTH"), mk_codec_cgi_content_length(options, digits)};
    size_t nuls = 0;
    for (size_t i = 0; i <= options->n_headers; i++) {
        const struct mk_header *f = i ? &options->headers[i - 1] : &length;
        if (i ? !mk_codec_cgi_is_reserved(f->name) : f->value.p != NULL)
            nuls += mk_fcgi_append_param(out, f->name,
                                         f->value); /* single call, so that the compiler inlines it */
    }
    return nuls;
}

static size_t count_nuls(mk_str text)
{
    size_t n = 0;
    const char *at = text.p, *end = text.p + text.len;
    for (; at < end && (at = memchr(at, '\0', (size_t)(end - at))); at++)
        n++;
    return n;
}

/* Rejects names and values that contain a NUL. Counting all NUL bytes of the record once is faster than
 * searching each name and value. */
static mk_err fastcgi_write_head(struct mk_buf *out, const struct mk_upstream_request_options *options,
                                 const char **problem)
{
    mk_err e = mk_codec_cgi_check_request(options, problem);
    if (e)
        return e;
    mk_fcgi_append_begin_request(out);
    size_t begun = mk_fcgi_begin_params(out), from = out->len, nuls = append_params(out, options);
    *problem = MK_CODEC_CGI_INVALID;
    if (!out->failed && count_nuls(mk_str_skip(mk_buf_str(out), from)) != nuls)
        return -EINVAL;
    mk_fcgi_end_params(out, begun);
    return 0;
}

static void fastcgi_write_stdin_header(char *piece, size_t len)
{
    mk_fcgi_write_header(piece - MK_FCGI_HEADER, MK_FCGI_STDIN, len);
}

static void fastcgi_write_stdin_end(struct mk_buf *out, const struct mk_upstream_request_body *source,
                                    void *ctx)
{
    char header[MK_FCGI_HEADER];
    (void)source;
    (void)ctx;
    mk_fcgi_write_header(header, MK_FCGI_STDIN, 0);
    mk_buf_add(out, mk_str_of(header, sizeof header));
}

static const struct mk_codec_body_framing stdin_frame = {
    .before = MK_FCGI_HEADER, .wrap = fastcgi_write_stdin_header, .end = fastcgi_write_stdin_end};

static const struct mk_codec_body_framing *
fastcgi_body_framing(const struct mk_upstream_request_options *options)
{
    (void)options;
    return &stdin_frame;
}

/* ---- The response ---- */

static enum mk_response_parser_event handle_end_request(struct mk_codec_response_state *input)
{
    switch ((enum mk_fcgi_status)input->fcgi.status) {
    case MK_FCGI_COMPLETE:
        if (!input->reply.begun)
            return mk_codec_fail(input, -EPROTO, "the program ended without a response");
        return mk_codec_read_eof(input);
    case MK_FCGI_OVERLOADED:
        return mk_codec_fail(input, -EBUSY, "the server says that it is overloaded");
    case MK_FCGI_CANNOT_MULTIPLEX:
    case MK_FCGI_UNKNOWN_ROLE:
        break;
    }
    return mk_codec_fail(input, -EPROTO, "the server refuses the role of a responder");
}

/* Bytes that the response parser leaves unconsumed are passed to it again, followed by the next bytes. */
static enum mk_response_parser_event read_stdout(struct mk_codec_response_state *input, mk_str *in,
                                                 mk_str piece, mk_str *data)
{
    enum mk_response_parser_event step = mk_codec_read_response(input, &piece, data);
    if (step == MK_RESPONSE_PARSER_END)
        return MK_RESPONSE_PARSER_MORE; /* data after the declared length, or the body of a bodiless response:
                                         * discarded */
    if (step != MK_RESPONSE_PARSER_ERROR && piece.len)
        mk_fcgi_unread(&input->fcgi, in, piece.len);
    return step;
}

static enum mk_response_parser_event read_fastcgi_records(struct mk_codec_response_state *input, mk_str *in,
                                                          mk_str *data)
{
    enum mk_response_parser_event step = MK_RESPONSE_PARSER_MORE;
    mk_str piece;
    if (input->error)
        return MK_RESPONSE_PARSER_ERROR;
    while (step == MK_RESPONSE_PARSER_MORE) {
        switch (mk_fcgi_parse(&input->fcgi, in, &piece)) {
        case MK_FCGI_MORE:
            return MK_RESPONSE_PARSER_MORE;
        case MK_FCGI_OUT:
            step = read_stdout(input, in, piece, data);
            break;
        case MK_FCGI_ERR:
            if (input->on_error_text)
                input->on_error_text(input->ctx, piece);
            break;
        case MK_FCGI_OVER:
            return handle_end_request(input);
        case MK_FCGI_BAD:
            return mk_codec_fail(input, -EPROTO, input->fcgi.problem);
        }
    }
    return step;
}

/* EOF before the end of the request means that the connection broke. */
static enum mk_response_parser_event fastcgi_read_eof(struct mk_codec_response_state *input)
{
    if (input->error)
        return MK_RESPONSE_PARSER_ERROR;
    return mk_codec_fail(input, -ECONNRESET,
                         input->reply.begun ? "the response is incomplete"
                                            : "the connection was closed without a response");
}

const struct mk_codec_ops mk_codec_fastcgi = {
    .keeps = true,
    .is_cgi = true,
    .write_head = fastcgi_write_head,
    .frame = fastcgi_body_framing,
    .read = read_fastcgi_records,
    .read_end = fastcgi_read_eof,
};
