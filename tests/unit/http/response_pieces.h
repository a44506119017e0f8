/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a response at once and in pieces of every size: the result must be the same. */
#ifndef MK_UNIT_HTTP_RESPONSE_PIECES_H
#define MK_UNIT_HTTP_RESPONSE_PIECES_H

#include "http/response_parser.h"
#include "unit/test.h"

enum { BODY_MAX = 256, FIELDS_MAX = 4 };

struct outcome {
    enum mk_response_parser_event step;
    const char *problem;
    unsigned status;
    bool keep_alive;
    size_t rest, len, n_content;
    unsigned heads, n_fields;
    char body[BODY_MAX];
};

/* The parser options of the following tests. */
static struct mk_response_parser_options request;

static inline void add_text(struct outcome *o, mk_str text)
{
    assert_true(o->len + text.len <= BODY_MAX);
    memcpy(o->body + o->len, text.p, text.len);
    o->len += text.len;
}

/* Interim responses and trailers appear in the text: "103 Link: x|body|T: x". */
static inline void note(struct outcome *o, const struct mk_response_parser *r,
                        enum mk_response_parser_event step, mk_str data)
{
    char buffer[64];
    struct mk_buf line = mk_buf_fixed(buffer, sizeof buffer);
    o->heads += step == MK_RESPONSE_PARSER_HEAD;
    if (step == MK_RESPONSE_PARSER_HEAD && r->head.status < 200) {
        mk_buf_addf(&line, "%u", r->head.status);
        for (unsigned i = 0; i < r->head.fields.n; i++)
            mk_buf_addf(&line, " %.*s: %.*s", MK_STR_ARG(r->head.fields.at[i].name),
                        MK_STR_ARG(r->head.fields.at[i].value));
        mk_buf_add_char(&line, '|');
        add_text(o, mk_buf_str(&line));
    } else if (step == MK_RESPONSE_PARSER_HEAD) {
        o->n_fields = r->head.fields.n;
    } else if (step == MK_RESPONSE_PARSER_TRAILERS) {
        add_text(o, data);
    } else if (step == MK_RESPONSE_PARSER_DATA) {
        add_text(o, data);
        o->n_content += data.len;
    }
}

static inline bool goes_on(enum mk_response_parser_event step)
{
    return step == MK_RESPONSE_PARSER_HEAD || step == MK_RESPONSE_PARSER_DATA ||
           step == MK_RESPONSE_PARSER_TRAILERS;
}

static inline struct outcome read_in_pieces(mk_str text, size_t size, bool closes)
{
    struct outcome o = {.step = MK_RESPONSE_PARSER_MORE};
    struct mk_header_field fields[FIELDS_MAX];
    struct mk_response_parser r;
    mk_str in = mk_str_first(text, 0), data = MK_STR_NULL;
    size_t consumed = 0;
    mk_response_parser_init(&r, request, fields, FIELDS_MAX);
    while (goes_on(o.step) || (o.step == MK_RESPONSE_PARSER_MORE && consumed < text.len)) {
        if (o.step == MK_RESPONSE_PARSER_MORE) {
            in = mk_str_first(mk_str_skip(text, consumed), size);
            consumed += in.len;
        }
        o.step = mk_response_parser_next(&r, &in, &data);
        note(&o, &r, o.step, data);
    }
    o.rest = in.len + text.len - consumed;
    if (o.step == MK_RESPONSE_PARSER_MORE && closes)
        o.step = mk_response_parser_eof(&r);
    o.problem = r.problem;
    o.status = r.head.status;
    o.keep_alive = r.head.keep_alive;
    assert_int_equal(r.length, o.n_content);
    mk_response_parser_fini(&r);
    return o;
}

static inline struct outcome read_all(const char *text, bool closes)
{
    mk_str whole = mk_str_from_c(text);
    struct outcome all = read_in_pieces(whole, whole.len, closes);
    for (size_t size = 1; size < whole.len; size++) {
        struct outcome o = read_in_pieces(whole, size, closes);
        assert_int_equal(o.step, all.step);
        if (o.step == MK_RESPONSE_PARSER_ERROR)
            continue; /* reading in pieces, the parser may fail earlier, for another reason */
        assert_int_equal(o.status, all.status);
        assert_int_equal(o.len, all.len);
        assert_memory_equal(o.body, all.body, all.len);
        if (o.step == MK_RESPONSE_PARSER_END)
            assert_int_equal(o.rest, all.rest);
    }
    return all;
}

#endif
