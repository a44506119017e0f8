/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/codec.h"

#include "http/method.h"

const struct mk_codec_body_framing mk_codec_plain_frame = {0};

enum mk_response_parser_event mk_codec_fail(struct mk_codec_response_state *input, int error,
                                            const char *problem)
{
    input->error = error;
    input->problem = problem;
    return MK_RESPONSE_PARSER_ERROR;
}

enum mk_response_parser_event mk_codec_fail_parse(struct mk_codec_response_state *input)
{
    const struct mk_response_parser *r = &input->reply;
    int error = r->text.failed ? -ENOMEM : r->head.is_too_long ? -EOVERFLOW : -EPROTO;
    return mk_codec_fail(input, error, r->problem);
}

enum mk_response_parser_event mk_codec_read_response(struct mk_codec_response_state *input, mk_str *in,
                                                     mk_str *data)
{
    enum mk_response_parser_event step = mk_response_parser_next(&input->reply, in, data);
    return step == MK_RESPONSE_PARSER_ERROR ? mk_codec_fail_parse(input) : step;
}

enum mk_response_parser_event mk_codec_read_eof(struct mk_codec_response_state *input)
{
    enum mk_response_parser_event step = mk_response_parser_eof(&input->reply);
    return step == MK_RESPONSE_PARSER_ERROR ? mk_codec_fail(input, -ECONNRESET, input->reply.problem) : step;
}

bool mk_codec_awaits_continue(const struct mk_upstream_request_options *options)
{
    return options->expects_continue && options->protocol == MK_UPSTREAM_PROTOCOL_HTTP && options->length &&
           !options->body.p && !options->upgrade.len;
}

bool mk_codec_method_has_body(mk_str method)
{
    enum mk_method m = mk_method_find(method);
    return m == MK_METHOD_POST || m == MK_METHOD_PUT || m == MK_METHOD_PATCH;
}
