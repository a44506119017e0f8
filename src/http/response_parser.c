/* SPDX-License-Identifier: Apache-2.0 */
#include "http/response_parser.h"

#include "base/assert.h"

enum state { HEAD, HEADED, LENGTH, CHUNKED, UNTIL_CLOSE, END, BAD };

void mk_response_parser_init(struct mk_response_parser *r, struct mk_response_parser_options request,
                             struct mk_header_field *fields, unsigned fields_max)
{
    MK_ASSERT(fields_max <= MK_HEADERS_MAX);
    *r = (struct mk_response_parser){.request = request,
                                     .fields_max = (uint8_t)fields_max,
                                     .text = mk_buf_growing(MK_RESPONSE_PARSER_HEAD_MAX)};
    r->head.fields.at = fields;
}

void mk_response_parser_fini(struct mk_response_parser *r)
{
    mk_buf_free(&r->text);
}

static enum mk_response_parser_event set_error(struct mk_response_parser *r, const char *problem)
{
    r->state = BAD;
    r->problem = problem;
    return MK_RESPONSE_PARSER_ERROR;
}

/* Rejects an invalid beginning immediately, because the end of the head might never arrive. A CGI program
 * needs no such check, because it exits or is stopped. */
static const char *check_beginning(const struct mk_response_parser *r, mk_str text, size_t from)
{
    static const char start[] = "HTTP/1.";
    if (r->request.cgi)
        return NULL;
    if (memcmp(text.p, start, mk_min(text.len, sizeof start - 1)) != 0)
        return "the response does not begin with HTTP/1.";
    for (size_t i = from; i < text.len; i++)
        if (text.p[i] == '\n' && text.p[i - 1] != '\r')
            return "a line of the head does not end with CRLF";
    return NULL;
}

static enum mk_response_parser_event buffer_head(struct mk_response_parser *r, mk_str *in, mk_str *head)
{
    size_t before = r->text.len;
    mk_str part = mk_str_first(*in, MK_RESPONSE_PARSER_HEAD_MAX - before);
    mk_buf_add(&r->text, part);
    if (r->text.failed)
        return set_error(r, "out of memory for the response head");
    mk_str text = mk_buf_str(&r->text);
    size_t len = mk_response_head_end(text, before, r->request);
    const char *wrong = check_beginning(r, len ? mk_str_first(text, len) : text, before);
    if (wrong)
        return set_error(r, wrong);
    r->head.is_too_long = !len && text.len == MK_RESPONSE_PARSER_HEAD_MAX;
    if (r->head.is_too_long)
        return set_error(r, "the response head is longer than 32 KB");
    *in = mk_str_skip(*in, len ? len - before : part.len);
    *head = mk_str_first(text, len);
    return len ? MK_RESPONSE_PARSER_HEAD : MK_RESPONSE_PARSER_MORE;
}

/* Finds the head in *in, or buffers a part of it. Returns MK_RESPONSE_PARSER_HEAD if *head is complete. */
static enum mk_response_parser_event take_whole_head(struct mk_response_parser *r, mk_str *in, mk_str *head)
{
    size_t len =
        r->text.len ? 0 : mk_response_head_end(mk_str_first(*in, MK_RESPONSE_PARSER_HEAD_MAX), 0, r->request);
    if (!len)
        return buffer_head(r, in, head);
    *head = mk_str_first(*in, len); /* the head is complete: the head parser validates it */
    *in = mk_str_skip(*in, len);
    return MK_RESPONSE_PARSER_HEAD;
}

static enum mk_response_parser_event finish_head(struct mk_response_parser *r, const char *wrong)
{
    if (!wrong && r->head.status < 200 && ++r->n_interim > MK_RESPONSE_PARSER_1XX_MAX)
        wrong = "too many interim responses";
    if (wrong)
        return set_error(r, wrong);
    r->state = HEADED;
    return MK_RESPONSE_PARSER_HEAD;
}

/* Fast path: most heads arrive in one piece and are valid. */
static bool try_parse_head(struct mk_response_parser *r, mk_str *in)
{
    mk_str text = mk_str_first(*in, MK_RESPONSE_PARSER_HEAD_MAX);
    if (r->text.len || !mk_response_head_try_parse(&r->head, &text, r->fields_max, r->request)) {
        r->head = (struct mk_response_head){.fields.at = r->head.fields.at}; /* inconclusive */
        return false;
    }
    *in = mk_str_skip(*in, (size_t)(text.p - in->p));
    return true;
}

static enum mk_response_parser_event parse_head(struct mk_response_parser *r, mk_str *in)
{
    mk_str head;
    if (in->len == 0)
        return MK_RESPONSE_PARSER_MORE;
    r->begun = true;
    if (try_parse_head(r, in))
        return finish_head(r, NULL);
    enum mk_response_parser_event step = take_whole_head(r, in, &head);
    if (step != MK_RESPONSE_PARSER_HEAD)
        return step;
    return finish_head(r, mk_response_head_parse(&r->head, head, r->fields_max, r->request));
}

/* Called at the start of the next call after a head was returned: the text of the head is no longer
 * needed. */
static void enter_body_state(struct mk_response_parser *r)
{
    static const uint8_t states[] = {[MK_RESPONSE_BODY_NONE] = END,
                                     [MK_RESPONSE_BODY_LENGTH] = LENGTH,
                                     [MK_RESPONSE_BODY_CHUNKED] = CHUNKED,
                                     [MK_RESPONSE_BODY_UNTIL_CLOSE] = UNTIL_CLOSE};
    mk_buf_free(&r->text);
    bool is_interim = r->head.status < 200 && r->head.status != 101;
    r->state = is_interim ? HEAD : states[r->head.body];
    r->left = r->head.length;
    if (r->state == CHUNKED)
        mk_chunked_init_allow_padding(&r->chunked, MK_RESPONSE_PARSER_TRAILERS_MAX);
}

static enum mk_response_parser_event read_chunked(struct mk_response_parser *r, mk_str *in, mk_str *data)
{
    switch (mk_chunked_decode(&r->chunked, in, data)) {
    case MK_CHUNKED_MORE:
        return MK_RESPONSE_PARSER_MORE;
    case MK_CHUNKED_DATA:
        return MK_RESPONSE_PARSER_DATA;
    case MK_CHUNKED_TRAILERS:
        return MK_RESPONSE_PARSER_TRAILERS;
    case MK_CHUNKED_END:
        r->state = END;
        return MK_RESPONSE_PARSER_END;
    default:
        return set_error(r, "invalid chunked coding");
    }
}

static enum mk_response_parser_event read_body(struct mk_response_parser *r, mk_str *in, mk_str *data)
{
    if (in->len == 0)
        return MK_RESPONSE_PARSER_MORE;
    *data = r->state == LENGTH && in->len > r->left ? mk_str_first(*in, (size_t)r->left) : *in;
    *in = mk_str_skip(*in, data->len);
    if (r->state == LENGTH && (r->left -= data->len) == 0)
        r->state = END;
    return MK_RESPONSE_PARSER_DATA;
}

enum mk_response_parser_event mk_response_parser_next(struct mk_response_parser *r, mk_str *in, mk_str *data)
{
    enum mk_response_parser_event step;
    if (r->state == HEADED)
        enter_body_state(r);
    switch ((enum state)r->state) {
    case HEAD:
        return parse_head(r, in);
    case CHUNKED:
        step = read_chunked(r, in, data);
        break;
    case LENGTH:
    case UNTIL_CLOSE:
        step = read_body(r, in, data);
        break;
    case END:
        return MK_RESPONSE_PARSER_END;
    case HEADED:
    case BAD:
    default:
        return MK_RESPONSE_PARSER_ERROR;
    }
    if (step == MK_RESPONSE_PARSER_DATA)
        r->length += data->len;
    return step;
}

bool mk_response_parser_has_all_body(const struct mk_response_parser *r)
{
    bool has_content = r->state != HEADED || r->head.status < 200 || r->head.body != MK_RESPONSE_BODY_NONE;
    return r->state == END || !has_content;
}

uint64_t mk_response_parser_body_left(const struct mk_response_parser *r)
{
    bool is_head = r->state == HEADED && r->head.body == MK_RESPONSE_BODY_LENGTH;
    return is_head ? r->head.length : r->state == LENGTH ? r->left : UINT64_MAX;
}

enum mk_response_parser_event mk_response_parser_eof(struct mk_response_parser *r)
{
    if (r->state == HEADED)
        enter_body_state(r);
    if (r->state == UNTIL_CLOSE)
        r->state = END;
    if (r->state == END)
        return MK_RESPONSE_PARSER_END;
    if (r->state == BAD)
        return MK_RESPONSE_PARSER_ERROR;
    return set_error(r, r->begun ? "the response is incomplete"
                                 : "the connection was closed without a response");
}
