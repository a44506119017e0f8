/* SPDX-License-Identifier: Apache-2.0 */
/* The parser must return the same result, body and remaining input whether it reads a response at once or in
 * pieces. Only the reason for a rejection may differ, because pieces may be rejected earlier. */
#include "base/assert.h"
#include "http/response_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, FIELDS_MAX = 16 };

struct result {
    enum mk_response_parser_event step, closed;
    unsigned status;
    bool keep_alive;
    unsigned heads;
    size_t len, rest;
    char body[INPUT_MAX];
};

static bool goes_on(enum mk_response_parser_event step)
{
    return step == MK_RESPONSE_PARSER_HEAD || step == MK_RESPONSE_PARSER_DATA ||
           step == MK_RESPONSE_PARSER_TRAILERS;
}

static void read_reply(mk_str text, size_t size, struct mk_response_parser_options request,
                       struct result *out)
{
    struct mk_header_field fields[FIELDS_MAX];
    struct mk_response_parser r;
    mk_str in = mk_str_first(text, 0), data;
    size_t consumed = 0, content = 0;
    *out = (struct result){.step = MK_RESPONSE_PARSER_MORE};
    mk_response_parser_init(&r, request, fields, FIELDS_MAX);
    while (goes_on(out->step) || (out->step == MK_RESPONSE_PARSER_MORE && consumed < text.len)) {
        if (out->step == MK_RESPONSE_PARSER_MORE) {
            MK_ASSERT(in.len == 0);
            in = mk_str_first(mk_str_skip(text, consumed), size);
            consumed += in.len;
        }
        out->step = mk_response_parser_next(&r, &in, &data);
        out->heads += out->step == MK_RESPONSE_PARSER_HEAD;
        if (out->step != MK_RESPONSE_PARSER_DATA && out->step != MK_RESPONSE_PARSER_TRAILERS)
            continue;
        MK_ASSERT(data.len > 0 && data.p >= text.p && data.p + data.len <= text.p + consumed);
        MK_ASSERT(out->len + data.len <= INPUT_MAX);
        memcpy(out->body + out->len, data.p, data.len);
        out->len += data.len;
        content += out->step == MK_RESPONSE_PARSER_DATA ? data.len : 0;
    }
    out->rest = in.len + text.len - consumed;
    MK_ASSERT(r.length == content && r.text.len <= MK_RESPONSE_PARSER_HEAD_MAX);
    MK_ASSERT((out->step == MK_RESPONSE_PARSER_ERROR) == (r.problem != NULL));
    MK_ASSERT(out->step != MK_RESPONSE_PARSER_END || (r.head.status >= 200 && r.head.status <= 599) ||
              (request.upgrade && r.head.status == 101));
    out->status = r.head.status;
    out->keep_alive = r.head.keep_alive;
    MK_ASSERT(!request.cgi || !out->keep_alive);
    out->closed = mk_response_parser_eof(&r);
    MK_ASSERT(out->closed == MK_RESPONSE_PARSER_END ||
              (out->closed == MK_RESPONSE_PARSER_ERROR && r.problem));
    MK_ASSERT(out->step == MK_RESPONSE_PARSER_MORE || out->closed == out->step);
    mk_response_parser_fini(&r);
}

/* The first byte selects the request, and whether the response is from a CGI program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, pieces;
    if (size < 1 || size > INPUT_MAX)
        return 0;
    struct mk_response_parser_options request = {.head = data[0] == 'h' || data[0] == 'C',
                                                 .upgrade = data[0] == 'u',
                                                 .cgi = data[0] == 'c' || data[0] == 'C'};
    mk_str text = mk_str_of((const char *)data + 1, size - 1);
    read_reply(text, INPUT_MAX, request, &whole);
    for (size_t step = 1; step < 5; step++) {
        read_reply(text, step, request, &pieces);
        MK_ASSERT(pieces.step == whole.step && pieces.closed == whole.closed);
        if (whole.step == MK_RESPONSE_PARSER_ERROR)
            continue;
        MK_ASSERT(pieces.status == whole.status && pieces.keep_alive == whole.keep_alive);
        MK_ASSERT(pieces.heads == whole.heads);
        MK_ASSERT(pieces.len == whole.len && memcmp(pieces.body, whole.body, whole.len) == 0);
        MK_ASSERT(whole.step != MK_RESPONSE_PARSER_END || pieces.rest == whole.rest);
    }
    return 0;
}
