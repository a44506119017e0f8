/* SPDX-License-Identifier: Apache-2.0 */
#include "load/answer.h"

enum state { HEAD, LENGTH, CHUNKED, UNTIL_CLOSE, END, BAD };

void load_answer_init(struct load_answer *a)
{
    *a = (struct load_answer){.text = mk_buf_growing(LOAD_ANSWER_HEAD_MAX)};
}

void load_answer_fini(struct load_answer *a)
{
    mk_buf_free(&a->text);
    load_answer_init(a);
}

static enum load_answer_step fail(struct load_answer *a, const char *problem)
{
    a->state = BAD;
    a->problem = problem;
    return LOAD_ANSWER_BAD;
}

/* What cannot become a head is refused at once: it might never end. */
static const char *judge_beginning(mk_str text, size_t from)
{
    static const char start[] = "HTTP/1.";
    if (memcmp(text.p, start, mk_min(text.len, sizeof start - 1)) != 0)
        return "it does not begin with HTTP/1.";
    for (size_t i = from; i < text.len; i++)
        if (text.p[i] == '\n' && text.p[i - 1] != '\r')
            return "a line of the head does not end with CRLF";
    return NULL;
}

/* How long the head is; 0: its end is not there yet. */
static size_t find_end(mk_str text, size_t from)
{
    const char *end = memmem(text.p + from, text.len - from, "\r\n\r\n", 4);
    return end ? (size_t)(end - text.p) + 4 : 0;
}

static enum load_answer_step gather(struct load_answer *a, mk_str *in, mk_str *head)
{
    size_t before = a->text.len;
    mk_str part = mk_str_take(*in, LOAD_ANSWER_HEAD_MAX - before);
    mk_buf_add(&a->text, part);
    if (a->text.failed)
        return fail(a, "no memory for its head");
    mk_str text = mk_buf_str(&a->text);
    size_t len = find_end(text, before > 3 ? before - 3 : 0);
    const char *wrong = judge_beginning(len ? mk_str_take(text, len) : text, before);
    if (wrong)
        return fail(a, wrong);
    if (!len && text.len == LOAD_ANSWER_HEAD_MAX)
        return fail(a, "its head is longer than 32 KB");
    *in = mk_str_skip(*in, len ? len - before : part.len);
    *head = mk_str_take(text, len);
    return len ? LOAD_ANSWER_DATA : LOAD_ANSWER_MORE;
}

/* LOAD_ANSWER_DATA: *head is whole. */
static enum load_answer_step take_head(struct load_answer *a, mk_str *in, mk_str *head)
{
    if (in->len == 0)
        return LOAD_ANSWER_MORE;
    a->begun = true;
    size_t len = a->text.len ? 0 : find_end(mk_str_take(*in, LOAD_ANSWER_HEAD_MAX), 0);
    if (!len)
        return gather(a, in, head);
    *head = mk_str_take(*in, len);
    *in = mk_str_skip(*in, len);
    const char *wrong = judge_beginning(*head, 0);
    return wrong ? fail(a, wrong) : LOAD_ANSWER_DATA;
}

static enum load_answer_step read_head(struct load_answer *a, mk_str *in)
{
    static const uint8_t states[] = {[LOAD_BODY_NONE] = END,
                                     [LOAD_BODY_LENGTH] = LENGTH,
                                     [LOAD_BODY_CHUNKED] = CHUNKED,
                                     [LOAD_BODY_UNTIL_CLOSE] = UNTIL_CLOSE};
    mk_str head;
    enum load_answer_step step = take_head(a, in, &head);
    if (step != LOAD_ANSWER_DATA)
        return step;
    const char *wrong = load_head_parse(head, &a->head);
    mk_buf_free(&a->text);
    if (wrong)
        return fail(a, wrong);
    if (a->head.status < 200)
        return ++a->n_interim > LOAD_ANSWER_INTERIM_MAX ? fail(a, "too many interim answers")
                                                        : LOAD_ANSWER_DATA;
    a->state = states[a->head.body];
    a->left = a->head.length;
    mk_chunked_init(&a->chunked, LOAD_ANSWER_TRAILERS_MAX);
    return LOAD_ANSWER_DATA;
}

static enum load_answer_step read_chunked(struct load_answer *a, mk_str *in, mk_str *data)
{
    int r = MK_CHUNKED_TRAILERS;
    while (r == MK_CHUNKED_TRAILERS)
        r = mk_chunked_next(&a->chunked, in, data);
    if (r < 0)
        return fail(a, "its chunked coding is broken");
    if (r == MK_CHUNKED_END)
        a->state = END;
    return r == MK_CHUNKED_DATA ? LOAD_ANSWER_DATA : r == MK_CHUNKED_END ? LOAD_ANSWER_END : LOAD_ANSWER_MORE;
}

static enum load_answer_step read_plain(struct load_answer *a, mk_str *in, mk_str *data)
{
    if (in->len == 0)
        return LOAD_ANSWER_MORE;
    *data = a->state == LENGTH && in->len > a->left ? mk_str_take(*in, (size_t)a->left) : *in;
    *in = mk_str_skip(*in, data->len);
    if (a->state == LENGTH && (a->left -= data->len) == 0)
        a->state = END;
    return LOAD_ANSWER_DATA;
}

enum load_answer_step load_answer_next(struct load_answer *a, mk_str *in, mk_str *data)
{
    enum load_answer_step step = LOAD_ANSWER_DATA;
    while (a->state == HEAD && step == LOAD_ANSWER_DATA)
        step = read_head(a, in);
    if (a->state == HEAD)
        return step;
    if (a->state == CHUNKED)
        step = read_chunked(a, in, data);
    else if (a->state == LENGTH || a->state == UNTIL_CLOSE)
        step = read_plain(a, in, data);
    else
        return a->state == END ? LOAD_ANSWER_END : LOAD_ANSWER_BAD;
    if (step == LOAD_ANSWER_DATA)
        a->length += data->len;
    return step;
}

enum load_answer_step load_answer_close(struct load_answer *a)
{
    if (a->state == UNTIL_CLOSE)
        a->state = END;
    if (a->state == END)
        return LOAD_ANSWER_END;
    if (a->state == BAD)
        return LOAD_ANSWER_BAD;
    return fail(a, a->begun ? "it ended in the middle" : "the connection was closed without one");
}
