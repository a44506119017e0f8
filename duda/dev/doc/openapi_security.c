/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/openapi_security.h"

enum { SCHEME_NAME_MAX = 64 };

/* A word such as "header:X-Key" has a place and a name; other words have no name. */
struct scheme {
    mk_str place, name;
};

static struct scheme parse_word(mk_str word)
{
    struct scheme s = {.name = word};
    s.place = mk_str_cut(&s.name, ':');
    return s;
}

static bool is_api_key(const struct scheme *s)
{
    bool is_place = mk_str_eq(s->place, MK_STR("header")) || mk_str_eq(s->place, MK_STR("cookie")) ||
                    mk_str_eq(s->place, MK_STR("query"));
    return is_place && s->name.len > 0;
}

static bool is_known_word(mk_str word)
{
    static const mk_str plain[] = {MK_STR_INIT("bearer"), MK_STR_INIT("basic"), MK_STR_INIT("jwt"),
                                   MK_STR_INIT("session")};
    const struct scheme s = parse_word(word);
    for (size_t i = 0; i < MK_LEN(plain); i++)
        if (mk_str_eq(word, plain[i]))
            return true;
    return is_api_key(&s);
}

/* Returns the name of the scheme, with `_` in place of characters that names of components must not
 * contain. */
static mk_str format_scheme_name(char buf[SCHEME_NAME_MAX], mk_str word)
{
    size_t n = word.len < SCHEME_NAME_MAX ? word.len : SCHEME_NAME_MAX;
    for (size_t i = 0; i < n; i++) {
        char c = word.p[i];
        bool ok = mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '.' || c == '-';
        buf[i] = ok ? c : '_';
    }
    return mk_str_of(buf, n);
}

static bool add_scheme(struct dev_security_schemes *schemes, mk_str word)
{
    for (size_t i = 0; i < schemes->n; i++)
        if (mk_str_eq(schemes->words[i], word))
            return true;
    if (schemes->n == DEV_SECURITY_MAX)
        return false;
    schemes->words[schemes->n++] = word;
    return true;
}

bool dev_openapi_has_security(const char *words)
{
    mk_str rest = mk_str_from_c(words);
    while (rest.len)
        if (is_known_word(mk_str_word(&rest)))
            return true;
    return false;
}

void dev_openapi_write_security(struct mk_json_writer *w, struct dev_security_schemes *schemes,
                                const char *words)
{
    mk_str rest = mk_str_from_c(words ? words : "");
    char name[SCHEME_NAME_MAX];
    size_t n = 0;
    while (rest.len) {
        mk_str word = mk_str_word(&rest);
        if (!is_known_word(word) || !add_scheme(schemes, word))
            continue;
        if (n++ == 0)
            mk_json_begin_array(mk_json_key(w, "security"));
        mk_json_begin_object(w);
        mk_json_begin_array(mk_json_key_str(w, format_scheme_name(name, word)));
        mk_json_end_array(w);
        mk_json_end_object(w);
    }
    if (n)
        mk_json_end_array(w);
}

static void write_http_scheme(struct mk_json_writer *w, mk_str word)
{
    bool is_jwt = mk_str_eq(word, MK_STR("jwt"));
    mk_json_cstr(mk_json_key(w, "type"), "http");
    mk_json_string(mk_json_key(w, "scheme"), is_jwt ? MK_STR("bearer") : word);
    if (is_jwt)
        mk_json_cstr(mk_json_key(w, "bearerFormat"), "JWT");
}

static void write_session_scheme(struct mk_json_writer *w, const char *service)
{
    mk_json_cstr(mk_json_key(w, "type"), "apiKey");
    mk_json_cstr(mk_json_key(w, "in"), "cookie");
    mk_json_begin_string(mk_json_key(w, "name"));
    mk_buf_addf(w->out, "__Host-%s-session", service); /* see duda_reserved_cookie_name() */
    mk_json_end_string(w);
    mk_json_cstr(mk_json_key(w, "description"), "The session cookie. Without TLS its name has no prefix.");
}

static void write_scheme(struct mk_json_writer *w, mk_str word, const char *service)
{
    const struct scheme s = parse_word(word);
    mk_json_begin_object(w);
    if (mk_str_eq(word, MK_STR("session"))) {
        write_session_scheme(w, service);
    } else if (is_api_key(&s)) {
        mk_json_cstr(mk_json_key(w, "type"), "apiKey");
        mk_json_string(mk_json_key(w, "in"), s.place);
        mk_json_string(mk_json_key(w, "name"), s.name);
    } else {
        write_http_scheme(w, word);
    }
    mk_json_end_object(w);
}

void dev_openapi_write_security_schemes(struct mk_json_writer *w, const struct dev_security_schemes *schemes,
                                        const char *service)
{
    char name[SCHEME_NAME_MAX];
    if (schemes->n == 0)
        return;
    mk_json_newline(w);
    mk_json_begin_object(mk_json_key(w, "securitySchemes"));
    for (size_t i = 0; i < schemes->n; i++) {
        mk_json_key_str(w, format_scheme_name(name, schemes->words[i]));
        write_scheme(w, schemes->words[i], service);
    }
    mk_json_end_object(w);
}
