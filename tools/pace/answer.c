/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/answer.h"

enum state { HEAD, LENGTH, CHUNKED, UNTIL_CLOSE, END, BAD };

void pace_answer_init(struct pace_answer *a)
{
    *a = (struct pace_answer){.text = mk_buf_growing(PACE_ANSWER_HEAD_MAX)};
}

void pace_answer_fini(struct pace_answer *a)
{
    mk_buf_free(&a->text);
    pace_answer_init(a);
}

static enum pace_step fail(struct pace_answer *a, const char *problem)
{
    a->state = BAD;
    a->problem = problem;
    return PACE_ANSWER_BAD;
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

static enum pace_step gather(struct pace_answer *a, mk_str *in, mk_str *head)
{
    size_t before = a->text.len;
    mk_str part = mk_str_take(*in, PACE_ANSWER_HEAD_MAX - before);
    mk_buf_add(&a->text, part);
    if (a->text.failed)
        return fail(a, "no memory for its head");
    mk_str text = mk_buf_str(&a->text);
    size_t len = find_end(text, before > 3 ? before - 3 : 0);
    const char *wrong = judge_beginning(len ? mk_str_take(text, len) : text, before);
    if (wrong)
        return fail(a, wrong);
    if (!len && text.len == PACE_ANSWER_HEAD_MAX)
        return fail(a, "its head is longer than 32 KB");
    *in = mk_str_skip(*in, len ? len - before : part.len);
    *head = mk_str_take(text, len);
    return len ? PACE_ANSWER_DATA : PACE_ANSWER_MORE;
}

/* PACE_ANSWER_DATA: *head is whole. */
static enum pace_step take_head(struct pace_answer *a, mk_str *in, mk_str *head)
{
    if (in->len == 0)
        return PACE_ANSWER_MORE;
    a->begun = true;
    size_t len = a->text.len ? 0 : find_end(mk_str_take(*in, PACE_ANSWER_HEAD_MAX), 0);
    if (!len)
        return gather(a, in, head);
    *head = mk_str_take(*in, len);
    *in = mk_str_skip(*in, len);
    const char *wrong = judge_beginning(*head, 0);
    return wrong ? fail(a, wrong) : PACE_ANSWER_DATA;
}

static enum pace_step read_head(struct pace_answer *a, mk_str *in)
{
    static const uint8_t states[] = {[PACE_BODY_NONE] = END,
                                     [PACE_BODY_LENGTH] = LENGTH,
                                     [PACE_BODY_CHUNKED] = CHUNKED,
                                     [PACE_BODY_UNTIL_CLOSE] = UNTIL_CLOSE};
    mk_str head;
    enum pace_step step = take_head(a, in, &head);
    if (step != PACE_ANSWER_DATA)
        return step;
    const char *wrong = pace_head_parse(head, &a->head);
    mk_buf_free(&a->text);
    if (wrong)
        return fail(a, wrong);
    if (a->head.status < 200)
        return ++a->n_interim > PACE_ANSWER_INTERIM_MAX ? fail(a, "too many interim answers")
                                                        : PACE_ANSWER_DATA;
    a->state = states[a->head.body];
    a->left = a->head.length;
    mk_chunked_init(&a->chunked, PACE_ANSWER_TRAILERS_MAX);
    return PACE_ANSWER_DATA;
}

static enum pace_step read_chunked(struct pace_answer *a, mk_str *in, mk_str *data)
{
    int r = MK_CHUNKED_TRAILERS;
    while (r == MK_CHUNKED_TRAILERS)
        r = mk_chunked_next(&a->chunked, in, data);
    if (r < 0)
        return fail(a, "its chunked coding is broken");
    if (r == MK_CHUNKED_END)
        a->state = END;
    return r == MK_CHUNKED_DATA ? PACE_ANSWER_DATA : r == MK_CHUNKED_END ? PACE_ANSWER_END : PACE_ANSWER_MORE;
}

static enum pace_step read_plain(struct pace_answer *a, mk_str *in, mk_str *data)
{
    if (in->len == 0)
        return PACE_ANSWER_MORE;
    *data = a->state == LENGTH && in->len > a->left ? mk_str_take(*in, (size_t)a->left) : *in;
    *in = mk_str_skip(*in, data->len);
    if (a->state == LENGTH && (a->left -= data->len) == 0)
        a->state = END;
    return PACE_ANSWER_DATA;
}

enum pace_step pace_answer_next(struct pace_answer *a, mk_str *in, mk_str *data)
{
    enum pace_step step = PACE_ANSWER_DATA;
    while (a->state == HEAD && step == PACE_ANSWER_DATA)
        step = read_head(a, in);
    if (a->state == HEAD)
        return step;
    if (a->state == CHUNKED)
        step = read_chunked(a, in, data);
    else if (a->state == LENGTH || a->state == UNTIL_CLOSE)
        step = read_plain(a, in, data);
    else
        return a->state == END ? PACE_ANSWER_END : PACE_ANSWER_BAD;
    if (step == PACE_ANSWER_DATA)
        a->length += data->len;
    return step;
}

enum pace_step pace_answer_close(struct pace_answer *a)
{
    if (a->state == UNTIL_CLOSE)
        a->state = END;
    if (a->state == END)
        return PACE_ANSWER_END;
    if (a->state == BAD)
        return PACE_ANSWER_BAD;
    return fail(a, a->begun ? "it ended in the middle" : "the connection was closed without one");
}
