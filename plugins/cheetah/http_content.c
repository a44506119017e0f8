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

/* Where the value of a member is stored: one pointer is not NULL. */
struct member {
    enum cheetah_http_member bit;
    mk_str name;
    mk_str *text;
    bool *flag;
    uint64_t *number;
};

static const char *parse_value(mk_str *in, const struct member *m)
{
    if (m->number)
        return mk_num_parse(parse_word(in), m->number) && *m->number ? NULL : "expected a number above 0";
    return (m->text ? parse_string(in, m->text) : parse_bool(in, m->flag)) ? NULL : invalid;
}

static const char *parse_member(mk_str *in, unsigned allowed, struct cheetah_http_content *out)
{
    const struct member members[] = {
        {CHEETAH_HTTP_SERVER, MK_STR("server"), .text = &out->server},
        {CHEETAH_HTTP_STATE, MK_STR("state"), .text = &out->state},
        {CHEETAH_HTTP_WEIGHT, MK_STR("weight"), .number = &out->weight},
        {CHEETAH_HTTP_BACKUP, MK_STR("backup"), .flag = &out->is_backup},
        {CHEETAH_HTTP_MOVE, MK_STR("move"), .flag = &out->moves},
        {CHEETAH_HTTP_SAVE, MK_STR("save"), .flag = &out->saves},
        {CHEETAH_HTTP_LEVEL, MK_STR("level"), .text = &out->level},
        {CHEETAH_HTTP_CONFIRM, MK_STR("confirm"), .text = &out->confirm},
        {CHEETAH_HTTP_NUMBER, MK_STR("number"), .number = &out->number},
        {CHEETAH_HTTP_TIMEOUT, MK_STR("timeout"), .text = &out->timeout},
    };
    mk_str key;
    if (!parse_string(in, &key) || !expect(in, ':'))
        return invalid;
    for (size_t i = 0; i < MK_LEN(members); i++) {
        if (!mk_str_eq(key, members[i].name))
            continue;
        if (!(allowed & members[i].bit))
            return "a member is not valid for this request";
        out->given |= members[i].bit;
        return parse_value(in, &members[i]);
    }
    return "unknown member: expected `server`, `state`, `weight`, `backup`, `move`, `save`, `level`, "
           "`confirm`, `number` or `timeout`";
}

const char *cheetah_http_content_parse(mk_str content, unsigned allowed, struct cheetah_http_content *out)
{
    *out = (struct cheetah_http_content){.given = 0};
    if (!skip_blanks(&content) && !content.len)
        return NULL;
    if (!expect(&content, '{'))
        return invalid;
    if (!expect(&content, '}')) {
        do {
            const char *error = parse_member(&content, allowed, out);
            if (error)
                return error;
        } while (expect(&content, ','));
        if (!expect(&content, '}'))
            return invalid;
    }
    (void)skip_blanks(&content);
    return content.len ? invalid : NULL;
}
