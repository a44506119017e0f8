/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a response at once and in pieces of every size: that must make no difference. */
#ifndef MK_UNIT_PIECES_H
#define MK_UNIT_PIECES_H

#include "http/reply.h"
#include "unit/test.h"

enum { BODY_MAX = 256, FIELDS_MAX = 4 };

struct outcome {
    enum mk_reply_step step;
    const char *problem;
    unsigned status;
    bool keep_alive;
    size_t rest, len, n_content;
    unsigned heads, n_fields;
    char body[BODY_MAX];
};

/* Of the cases that follow. */
static struct mk_reply_request request;

static inline void add_text(struct outcome *o, mk_str text)
{
    assert_true(o->len + text.len <= BODY_MAX);
    memcpy(o->body + o->len, text.p, text.len);
    o->len += text.len;
}

/* Interim responses and trailers are a part of the text: "103 Link: x|body|T: x". */
static inline void note(struct outcome *o, const struct mk_reply *r, enum mk_reply_step step, mk_str data)
{
    char room[64];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    o->heads += step == MK_REPLY_HEADED;
    if (step == MK_REPLY_HEADED && r->head.status < 200) {
        mk_buf_addf(&line, "%u", r->head.status);
        for (unsigned i = 0; i < r->head.fields.n; i++)
            mk_buf_addf(&line, " %.*s: %.*s", MK_STR_ARG(r->head.fields.at[i].name),
                        MK_STR_ARG(r->head.fields.at[i].value));
        mk_buf_add_char(&line, '|');
        add_text(o, mk_buf_str(&line));
    } else if (step == MK_REPLY_HEADED) {
        o->n_fields = r->head.fields.n;
    } else if (step == MK_REPLY_TRAILERS) {
        add_text(o, data);
    } else if (step == MK_REPLY_DATA) {
        add_text(o, data);
        o->n_content += data.len;
    }
}

static inline bool goes_on(enum mk_reply_step step)
{
    return step == MK_REPLY_HEADED || step == MK_REPLY_DATA || step == MK_REPLY_TRAILERS;
}

static inline struct outcome read_in_pieces(mk_str text, size_t size, bool closes)
{
    struct outcome o = {.step = MK_REPLY_MORE};
    struct mk_field fields[FIELDS_MAX];
    struct mk_reply r;
    mk_str in = mk_str_first(text, 0), data = MK_ABSENT;
    size_t given = 0;
    mk_reply_init(&r, request, fields, FIELDS_MAX);
    while (goes_on(o.step) || (o.step == MK_REPLY_MORE && given < text.len)) {
        if (o.step == MK_REPLY_MORE) {
            in = mk_str_first(mk_str_skip(text, given), size);
            given += in.len;
        }
        o.step = mk_reply_next(&r, &in, &data);
        note(&o, &r, o.step, data);
    }
    o.rest = in.len + text.len - given;
    if (o.step == MK_REPLY_MORE && closes)
        o.step = mk_reply_close(&r);
    o.problem = r.problem;
    o.status = r.head.status;
    o.keep_alive = r.head.keep_alive;
    assert_int_equal(r.length, o.n_content);
    mk_reply_fini(&r);
    return o;
}

static inline struct outcome read_all(const char *text, bool closes)
{
    mk_str whole = mk_str_from_c(text);
    struct outcome all = read_in_pieces(whole, whole.len, closes);
    for (size_t size = 1; size < whole.len; size++) {
        struct outcome o = read_in_pieces(whole, size, closes);
        assert_int_equal(o.step, all.step);
        if (o.step == MK_REPLY_BAD)
            continue; /* pieces may be refused sooner, for another reason */
        assert_int_equal(o.status, all.status);
        assert_int_equal(o.len, all.len);
        assert_memory_equal(o.body, all.body, all.len);
        if (o.step == MK_REPLY_END)
            assert_int_equal(o.rest, all.rest);
    }
    return all;
}

#endif
