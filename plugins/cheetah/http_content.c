/* SPDX-License-Identifier: Apache-2.0 */
#include "http_content.h"

static const char invalid[] = "the content is not a JSON object of strings, numbers, true and false";

static char skip_blanks(mk_str *in)
{
    while (in->len && (in->p[0] == ' ' || in->p[0] == '\t' || in->p[0] == '\r' || in->p[0] == '\n'))
        *in = mk_str_skip(*in, 1);
    return in->len ? in->p[0] : '\0';
}

static bool expect(mk_str *in, char c)
{
    if (skip_blanks(in) != c || !in->len)
        return false;
    *in = mk_str_skip(*in, 1);
    return true;
}

/* The members need no escapes, and become words of a command. */
static bool parse_string(mk_str *in, mk_str *out)
{
    size_t n = 0;
    if (!expect(in, '"'))
        return false;
    while (n < in->len && in->p[n] != '"') {
        if (in->p[n] <= ' ' || in->p[n] > '~' || in->p[n] == '\\')
            return false;
        n++;
    }
    if (n == in->len)
        return false;
    *out = mk_str_first(*in, n);
    *in = mk_str_skip(*in, n + 1);
    return true;
}

static mk_str parse_word(mk_str *in)
{
    size_t n = 0;
    (void)skip_blanks(in);
    while (n < in->len && (mk_char_is_alpha(in->p[n]) || mk_char_is_digit(in->p[n])))
        n++;
    mk_str word = mk_str_first(*in, n);
    *in = mk_str_skip(*in, n);
    return word;
}

static bool parse_bool(mk_str *in, bool *out)
{
    mk_str word = parse_word(in);
    *out = mk_str_eq(word, MK_STR("true"));
    return *out || mk_str_eq(word, MK_STR("false"));
}

static const char *parse_member(mk_str *in, struct cheetah_http_content *out)
{
    const struct {
        mk_str name;
        mk_str *text;
        bool *flag;
    } members[] = {{MK_STR("server"), &out->server, NULL}, {MK_STR("state"), &out->state, NULL},
                   {MK_STR("level"), &out->level, NULL},   {MK_STR("backup"), NULL, &out->is_backup},
                   {MK_STR("move"), NULL, &out->moves},    {MK_STR("save"), NULL, &out->saves}};
    mk_str key;
    if (!parse_string(in, &key) || !expect(in, ':'))
        return invalid;
    if (mk_str_eq(key, MK_STR("weight"))) {
        out->has_weight = true;
        return mk_num_parse(parse_word(in), &out->weight) ? NULL : "`weight` is not a number";
    }
    for (size_t i = 0; i < MK_LEN(members); i++)
        if (mk_str_eq(key, members[i].name))
            return (members[i].text ? parse_string(in, members[i].text) : parse_bool(in, members[i].flag))
                       ? NULL
                       : invalid;
    return "unknown member: expected `server`, `state`, `weight`, `backup`, `move`, `save` or `level`";
}

const char *cheetah_http_content_parse(mk_str content, struct cheetah_http_content *out)
{
    *out = (struct cheetah_http_content){.has_weight = false};
    if (!skip_blanks(&content) && !content.len)
        return NULL;
    if (!expect(&content, '{'))
        return invalid;
    if (!expect(&content, '}')) {
        do {
            const char *error = parse_member(&content, out);
            if (error)
                return error;
        } while (expect(&content, ','));
        if (!expect(&content, '}'))
            return invalid;
    }
    (void)skip_blanks(&content);
    return content.len ? invalid : NULL;
}
