/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that is read at once and in pieces has the same end, the same content and the same rest; only
 * for what it is refused may differ, since pieces may be refused sooner. */
#include "base/assert.h"
#include "load/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096 };

struct result {
    enum load_answer_step step, closed;
    unsigned status;
    bool keep_alive;
    size_t len, rest;
    char body[INPUT_MAX];
};

static void read_answer(mk_str text, size_t size, struct result *out)
{
    struct load_answer a;
    mk_str in = mk_str_take(text, 0), data;
    size_t given = 0;
    *out = (struct result){.step = LOAD_ANSWER_MORE};
    load_answer_init(&a);
    while (out->step == LOAD_ANSWER_DATA || (out->step == LOAD_ANSWER_MORE && given < text.len)) {
        if (out->step == LOAD_ANSWER_MORE) {
            MK_ASSERT(in.len == 0);
            in = mk_str_take(mk_str_skip(text, given), size);
            given += in.len;
        }
        out->step = load_answer_next(&a, &in, &data);
        if (out->step != LOAD_ANSWER_DATA)
            continue;
        MK_ASSERT(data.len > 0 && data.p >= text.p && data.p + data.len <= text.p + given);
        MK_ASSERT(out->len + data.len <= INPUT_MAX);
        memcpy(out->body + out->len, data.p, data.len);
        out->len += data.len;
    }
    out->rest = in.len + text.len - given;
    MK_ASSERT(a.length == out->len && a.text.len <= LOAD_ANSWER_HEAD_MAX);
    MK_ASSERT((out->step == LOAD_ANSWER_BAD) == (a.problem != NULL));
    MK_ASSERT(out->step != LOAD_ANSWER_END || (a.head.status >= 200 && a.head.status <= 599));
    out->status = a.head.status;
    out->keep_alive = a.head.keep_alive;
    out->closed = load_answer_close(&a);
    MK_ASSERT(out->closed == LOAD_ANSWER_END || (out->closed == LOAD_ANSWER_BAD && a.problem));
    MK_ASSERT(out->step == LOAD_ANSWER_MORE || out->closed == out->step);
    load_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, pieces;
    if (size > INPUT_MAX)
        return 0;
    mk_str text = mk_str_of((const char *)data, size);
    read_answer(text, INPUT_MAX, &whole);
    for (size_t step = 1; step < 5; step++) {
        read_answer(text, step, &pieces);
        MK_ASSERT(pieces.step == whole.step && pieces.closed == whole.closed);
        if (whole.step == LOAD_ANSWER_BAD)
            continue;
        MK_ASSERT(pieces.status == whole.status && pieces.keep_alive == whole.keep_alive);
        MK_ASSERT(pieces.len == whole.len && memcmp(pieces.body, whole.body, whole.len) == 0);
        MK_ASSERT(whole.step != LOAD_ANSWER_END || pieces.rest == whole.rest);
    }
    return 0;
}
