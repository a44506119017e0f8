/* SPDX-License-Identifier: Apache-2.0 */
#include "http/reply.h"

#include "base/assert.h"

enum state { HEAD, HEADED, LENGTH, CHUNKED, UNTIL_CLOSE, END, BAD };

void mk_reply_init(struct mk_reply *r, struct mk_reply_request request, struct mk_field *fields,
                   unsigned fields_max)
{
    MK_ASSERT(fields_max <= MK_FIELDS_MAX);
    *r = (struct mk_reply){
        .request = request, .fields_max = (uint8_t)fields_max, .text = mk_buf_growing(MK_REPLY_HEAD_MAX)};
    r->head.fields.at = fields;
}

void mk_reply_fini(struct mk_reply *r)
{
    mk_buf_free(&r->text);
}

static enum mk_reply_step fail(struct mk_reply *r, const char *problem)
{
    r->state = BAD;
    r->problem = problem;
    return MK_REPLY_BAD;
}

/* What cannot become a head is refused at once: it might never end. A CGI program ends, or is ended. */
static const char *judge_beginning(const struct mk_reply *r, mk_str text, size_t from)
{
    static const char start[] = "HTTP/1.";
    if (r->request.cgi)
        return NULL;
    if (memcmp(text.p, start, mk_min(text.len, sizeof start - 1)) != 0)
        return "it does not begin with HTTP/1.";
    for (size_t i = from; i < text.len; i++)
        if (text.p[i] == '\n' && text.p[i - 1] != '\r')
            return "a line of the head does not end with CRLF";
    return NULL;
}

static enum mk_reply_step gather(struct mk_reply *r, mk_str *in, mk_str *head)
{
    size_t before = r->text.len;
    mk_str part = mk_str_first(*in, MK_REPLY_HEAD_MAX - before);
    mk_buf_add(&r->text, part);
    if (r->text.failed)
        return fail(r, "no memory for its head");
    mk_str text = mk_buf_str(&r->text);
    size_t len = mk_reply_head_end(text, before, r->request);
    const char *wrong = judge_beginning(r, len ? mk_str_first(text, len) : text, before);
    if (wrong)
        return fail(r, wrong);
    r->head.is_too_long = !len && text.len == MK_REPLY_HEAD_MAX;
    if (r->head.is_too_long)
        return fail(r, "its head is longer than 32 KB");
    *in = mk_str_skip(*in, len ? len - before : part.len);
    *head = mk_str_first(text, len);
    return len ? MK_REPLY_HEADED : MK_REPLY_MORE;
}

/* MK_REPLY_HEADED: *head is whole. */
static enum mk_reply_step accept_head(struct mk_reply *r, mk_str *in, mk_str *head)
{
    size_t len = r->text.len ? 0 : mk_reply_head_end(mk_str_first(*in, MK_REPLY_HEAD_MAX), 0, r->request);
    if (!len)
        return gather(r, in, head);
    *head = mk_str_first(*in, len); /* it is whole: its parser judges it */
    *in = mk_str_skip(*in, len);
    return MK_REPLY_HEADED;
}

static enum mk_reply_step end_head(struct mk_reply *r, const char *wrong)
{
    if (!wrong && r->head.status < 200 && ++r->n_interim > MK_REPLY_INTERIM_MAX)
        wrong = "too many interim responses";
    if (wrong)
        return fail(r, wrong);
    r->state = HEADED;
    return MK_REPLY_HEADED;
}

/* Most heads come in one piece, and are well: that is seen while they are parsed. */
static bool try_head(struct mk_reply *r, mk_str *in)
{
    mk_str text = mk_str_first(*in, MK_REPLY_HEAD_MAX);
    if (r->text.len || !mk_reply_head_try(&r->head, &text, r->fields_max, r->request)) {
        r->head = (struct mk_reply_head){.fields.at = r->head.fields.at}; /* that was no judgement */
        return false;
    }
    *in = mk_str_skip(*in, (size_t)(text.p - in->p));
    return true;
}

static enum mk_reply_step read_head(struct mk_reply *r, mk_str *in)
{
    mk_str head;
    if (in->len == 0)
        return MK_REPLY_MORE;
    r->begun = true;
    if (try_head(r, in))
        return end_head(r, NULL);
    enum mk_reply_step step = accept_head(r, in, &head);
    if (step != MK_REPLY_HEADED)
        return step;
    return end_head(r, mk_reply_head_parse(&r->head, head, r->fields_max, r->request));
}

/* The caller has seen the head. */
static void leave_head(struct mk_reply *r)
{
    static const uint8_t states[] = {[MK_REPLY_NONE] = END,
                                     [MK_REPLY_LENGTH] = LENGTH,
                                     [MK_REPLY_CHUNKED] = CHUNKED,
                                     [MK_REPLY_UNTIL_CLOSE] = UNTIL_CLOSE};
    mk_buf_free(&r->text);
    bool is_interim = r->head.status < 200 && r->head.status != 101;
    r->state = is_interim ? HEAD : states[r->head.body];
    r->left = r->head.length;
    mk_chunked_init_padded(&r->chunked, MK_REPLY_TRAILERS_MAX);
}

static enum mk_reply_step read_chunked(struct mk_reply *r, mk_str *in, mk_str *data)
{
    switch (mk_chunked_next(&r->chunked, in, data)) {
    case MK_CHUNKED_MORE:
        return MK_REPLY_MORE;
    case MK_CHUNKED_DATA:
        return MK_REPLY_DATA;
    case MK_CHUNKED_TRAILERS:
        return MK_REPLY_TRAILERS;
    case MK_CHUNKED_END:
        r->state = END;
        return MK_REPLY_END;
    default:
        return fail(r, "its chunked coding is broken");
    }
}

static enum mk_reply_step read_plain(struct mk_reply *r, mk_str *in, mk_str *data)
{
    if (in->len == 0)
        return MK_REPLY_MORE;
    *data = r->state == LENGTH && in->len > r->left ? mk_str_first(*in, (size_t)r->left) : *in;
    *in = mk_str_skip(*in, data->len);
    if (r->state == LENGTH && (r->left -= data->len) == 0)
        r->state = END;
    return MK_REPLY_DATA;
}

enum mk_reply_step mk_reply_next(struct mk_reply *r, mk_str *in, mk_str *data)
{
    enum mk_reply_step step;
    if (r->state == HEADED)
        leave_head(r);
    switch ((enum state)r->state) {
    case HEAD:
        return read_head(r, in);
    case CHUNKED:
        step = read_chunked(r, in, data);
        break;
    case LENGTH:
    case UNTIL_CLOSE:
        step = read_plain(r, in, data);
        break;
    case END:
        return MK_REPLY_END;
    case HEADED:
    case BAD:
    default:
        return MK_REPLY_BAD;
    }
    if (step == MK_REPLY_DATA)
        r->length += data->len;
    return step;
}

bool mk_reply_is_over(const struct mk_reply *r)
{
    bool has_content = r->state != HEADED || r->head.status < 200 || r->head.body != MK_REPLY_NONE;
    return r->state == END || !has_content;
}

uint64_t mk_reply_left(const struct mk_reply *r)
{
    bool is_head = r->state == HEADED && r->head.body == MK_REPLY_LENGTH;
    return is_head ? r->head.length : r->state == LENGTH ? r->left : UINT64_MAX;
}

enum mk_reply_step mk_reply_close(struct mk_reply *r)
{
    if (r->state == HEADED)
        leave_head(r);
    if (r->state == UNTIL_CLOSE)
        r->state = END;
    if (r->state == END)
        return MK_REPLY_END;
    if (r->state == BAD)
        return MK_REPLY_BAD;
    return fail(r, r->begun ? "it ended in the middle" : "the connection was closed without a response");
}
