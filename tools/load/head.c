/* SPDX-License-Identifier: Apache-2.0 */
#include "load/head.h"

#include <monkey/text.h>

#include "http/field.h"

struct reading {
    struct load_head *head;
    unsigned minor;
    bool has_length, has_coding, says_close, says_keep_alive;
};

/* "HTTP/1.1 200 OK": the reason may be empty, its space must be there. */
static const char *read_status(struct reading *r, mk_str line)
{
    static const size_t version_len = sizeof "HTTP/1.1 " - 1, reason_at = sizeof "HTTP/1.1 200 " - 1;
    uint64_t status;
    if (line.len < reason_at || !mk_str_starts(line, MK_STR("HTTP/1.")) || line.p[version_len - 1] != ' ' ||
        line.p[reason_at - 1] != ' ')
        return "the status line is none of HTTP/1.0 or 1.1";
    char minor = line.p[version_len - 2];
    if (minor != '0' && minor != '1')
        return "the version is neither HTTP/1.0 nor 1.1";
    r->minor = (unsigned)(minor - '0');
    if (!mk_num_parse(mk_str_of(line.p + version_len, 3), &status) || status < 100 || status > 599)
        return "the status is no number from 100 to 599";
    if (!mk_is_field_value(mk_str_skip(line, reason_at)))
        return "the reason phrase has control characters";
    r->head->status = (unsigned)status;
    return NULL;
}

static const char *read_length(struct reading *r, mk_str value)
{
    if (r->has_length)
        return "Content-Length is there twice";
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

static const char *read_field(struct reading *r, mk_str line)
{
    size_t colon = mk_str_find(line, ':');
    if (colon == MK_STR_NONE)
        return "a line of the head has no colon";
    mk_str name = mk_str_take(line, colon), value = mk_str_trim(mk_str_skip(line, colon + 1));
    if (!mk_is_token(name))
        return "the name of a field is not a token";
    if (!mk_is_field_value(value))
        return "the value of a field has control characters";
    enum mk_field_id id = mk_field_find_id(name);
    if (id == MK_FIELD_CONTENT_LENGTH)
        return read_length(r, value);
    if (id == MK_FIELD_TRANSFER_ENCODING)
        return read_coding(r, value);
    if (id == MK_FIELD_CONNECTION)
        read_connection(r, value);
    return NULL;
}

/* RFC 9112, section 6.3. */
static const char *decide(struct reading *r)
{
    struct load_head *h = r->head;
    if (r->has_coding && r->has_length)
        return "both Transfer-Encoding and Content-Length";
    if (r->has_coding && r->minor == 0)
        return "Transfer-Encoding in HTTP/1.0";
    if (h->status == 101)
        return "101 without an Upgrade that was asked for";
    h->keep_alive = !r->says_close && (r->minor > 0 || r->says_keep_alive);
    if (h->status < 200 || h->status == 204 || h->status == 304)
        h->body = LOAD_BODY_NONE;
    else if (r->has_coding)
        h->body = LOAD_BODY_CHUNKED;
    else if (r->has_length)
        h->body = h->length ? LOAD_BODY_LENGTH : LOAD_BODY_NONE;
    else
        h->body = LOAD_BODY_UNTIL_CLOSE;
    h->keep_alive &= h->body != LOAD_BODY_UNTIL_CLOSE;
    return NULL;
}

/* The next line without its CRLF; absent when it does not end with one. */
static mk_str cut_line(mk_str *text)
{
    mk_str line = mk_str_cut(text, '\n');
    if (!text->p || line.len == 0 || line.p[line.len - 1] != '\r')
        return (mk_str){NULL, 0};
    return mk_str_take(line, line.len - 1);
}

const char *load_head_parse(mk_str text, struct load_head *out)
{
    struct reading r = {.head = out};
    *out = (struct load_head){0};
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
        wrong = "there is more behind the empty line";
    return wrong ? wrong : decide(&r);
}
