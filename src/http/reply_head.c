/* SPDX-License-Identifier: Apache-2.0 */
#include "http/reply_head.h"

struct reading {
    struct mk_reply_head *head;
    struct mk_reply_request request;
    unsigned fields_max;
    bool has_length, has_coding, has_upgrade, says_close, says_keep_alive;
};

/* "HTTP/1.1 200 OK": the reason may be empty, its space must be there. */
static const char *read_status(struct reading *r, mk_str line)
{
    static const size_t version_len = sizeof "HTTP/1.1 " - 1, reason_at = sizeof "HTTP/1.1 200 " - 1;
    uint64_t status;
    if (line.len < reason_at || !mk_str_starts(line, MK_STR("HTTP/1.")) || line.p[version_len - 1] != ' ' ||
        line.p[reason_at - 1] != ' ')
        return "the status line is not of HTTP/1.0 or 1.1";
    char minor = line.p[version_len - 2];
    if (minor != '0' && minor != '1')
        return "the version is neither HTTP/1.0 nor 1.1";
    r->head->minor = (unsigned)(minor - '0');
    if (!mk_num_parse(mk_str_of(line.p + version_len, 3), &status) || status < 100 || status > 599)
        return "the status is not a number from 100 to 599";
    r->head->reason = mk_str_skip(line, reason_at);
    if (!mk_is_field_value(r->head->reason))
        return "the reason phrase has control characters";
    r->head->status = (unsigned)status;
    return NULL;
}

static const char *read_length(struct reading *r, mk_str value)
{
    if (r->has_length)
        return "Content-Length appears twice";
    r->has_length = true;
    return mk_num_parse(value, &r->head->length) ? NULL : "Content-Length is not a number";
}

static const char *read_coding(struct reading *r, mk_str value)
{
    if (r->has_coding || !mk_str_eq_nocase(value, MK_STR("chunked")))
        return "Transfer-Encoding is not just chunked";
    r->has_coding = true;
    return NULL;
}

static void read_connection(struct reading *r, mk_str value)
{
    mk_str element;
    while (mk_element_next(&value, &element)) {
        r->says_close |= mk_str_eq_nocase(element, MK_STR("close"));
        r->says_keep_alive |= mk_str_eq_nocase(element, MK_STR("keep-alive"));
    }
}

static const char *add_field(struct reading *r, struct mk_field field)
{
    struct mk_fields *fields = &r->head->fields;
    if (fields->n == r->fields_max)
        return "the head has too many fields";
    fields->at[fields->n++] = field;
    if (!fields->first[field.id])
        fields->first[field.id] = (uint8_t)fields->n;
    return NULL;
}

static const char *read_field(struct reading *r, mk_str line)
{
    size_t colon = mk_str_find(line, ':');
    if (colon == MK_STR_NONE)
        return "a line of the head has no colon";
    mk_str name = mk_str_first(line, colon), value = mk_str_trim(mk_str_skip(line, colon + 1));
    if (!mk_is_token(name))
        return "the name of a field is not a token";
    if (!mk_is_field_value(value))
        return "the value of a field has control characters";
    const char *wrong = NULL;
    enum mk_field_id id = mk_field_find_id(name);
    if (id == MK_FIELD_CONTENT_LENGTH)
        wrong = read_length(r, value);
    else if (id == MK_FIELD_TRANSFER_ENCODING)
        wrong = read_coding(r, value);
    else if (id == MK_FIELD_CONNECTION)
        read_connection(r, value);
    r->has_upgrade |= id == MK_FIELD_UPGRADE;
    if (wrong || !r->fields_max)
        return wrong;
    return add_field(r, (struct mk_field){.name = name, .value = value, .id = (uint8_t)id});
}

/* A head of 1xx, 204 or 304 ends the message, and so does each that answers HEAD (RFC 9112, section 6.3). */
static enum mk_reply_body decide_body(const struct reading *r)
{
    const struct mk_reply_head *h = r->head;
    if (h->status < 200 || h->status == 204 || h->status == 304 || r->request.head)
        return MK_REPLY_NONE;
    if (r->has_coding)
        return MK_REPLY_CHUNKED;
    if (!r->has_length)
        return MK_REPLY_UNTIL_CLOSE;
    return h->length ? MK_REPLY_LENGTH : MK_REPLY_NONE;
}

static const char *decide(struct reading *r)
{
    struct mk_reply_head *h = r->head;
    if (r->has_coding && r->has_length)
        return "both Transfer-Encoding and Content-Length";
    if (r->has_coding && h->minor == 0)
        return "Transfer-Encoding in HTTP/1.0";
    if (h->status == 101 && !(r->request.upgrade && r->has_upgrade))
        return "101 without a requested Upgrade";
    h->body = decide_body(r);
    h->keep_alive = !r->says_close && (h->minor > 0 || r->says_keep_alive) && h->body != MK_REPLY_UNTIL_CLOSE;
    return NULL;
}

/* The next line without its CRLF; absent when it does not end with one. */
static mk_str cut_line(mk_str *text)
{
    mk_str line = mk_str_cut(text, '\n');
    if (!text->p || line.len == 0 || line.p[line.len - 1] != '\r')
        return MK_ABSENT;
    return mk_str_first(line, line.len - 1);
}

const char *mk_reply_head_parse(struct mk_reply_head *h, mk_str text, unsigned fields_max,
                                struct mk_reply_request request)
{
    struct reading r = {.head = h, .request = request, .fields_max = fields_max};
    struct mk_field *room = h->fields.at;
    *h = (struct mk_reply_head){0};
    mk_fields_init(&h->fields, room);
    mk_str line = cut_line(&text);
    const char *wrong = line.p ? read_status(&r, line) : "the status line does not end with CRLF";
    while (!wrong) {
        line = cut_line(&text);
        if (!line.p)
            return "a line of the head does not end with CRLF";
        if (line.len == 0)
            break;
        wrong = read_field(&r, line);
    }
    if (!wrong && text.len)
        wrong = "there is more after the empty line";
    return wrong ? wrong : decide(&r);
}
