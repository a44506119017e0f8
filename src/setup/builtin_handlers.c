/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/builtin_handlers.h"

#include "base/num.h"
#include "http/header.h"
#include "web/redirect.h"
#include "web/static.h"
#include "web/status_handler.h"

static bool parse_status_in_range(mk_str word, unsigned from, unsigned to, unsigned *status)
{
    uint64_t n;
    if (!mk_num_parse(word, &n) || n < from || n > to)
        return false;
    *status = (unsigned)n;
    return true;
}

static bool bind_redirect(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    struct mk_redirect *r = mk_conf_ctx_alloc(ctx, sizeof *r);
    *data = r;
    if (!r)
        return false;
    bool known = parse_status_in_range(mk_str_word(&words), 301, 308, &r->status);
    r->url = mk_str_word(&words);
    bool is_redirect = r->status <= 303 || r->status >= 307;
    return known && is_redirect && words.len == 0 && mk_is_header_value(r->url) &&
           mk_redirect_is_valid_url(r->url);
}

static char unescape_char(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* Gets the text between the quotes, with \n, \t, \" and \\ unescaped. False: the closing quote is not the
 * last character. */
static bool parse_quoted(mk_str s, char *out, mk_str *text)
{
    size_t len = 0, i = 1;
    for (; i < s.len && s.p[i] != '"'; i++) {
        if (s.p[i] == '\\' && i + 1 < s.len && s.p[i + 1] && strchr("nt\"\\", s.p[i + 1]))
            out[len++] = unescape_char(s.p[++i]);
        else
            out[len++] = s.p[i];
    }
    *text = mk_str_of(out, len);
    return i + 1 == s.len;
}

static bool bind_status(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    struct mk_status_handler *answer = mk_conf_ctx_alloc(ctx, sizeof *answer);
    char *buf = mk_conf_ctx_alloc(ctx, words.len + 1);
    *data = answer;
    if (!answer || !buf || !parse_status_in_range(mk_str_word(&words), 200, 599, &answer->status) ||
        !mk_status_handler_allows(answer->status))
        return false;
    mk_str text = mk_str_trim(words);
    if (text.len == 0)
        return true;
    answer->text = text;
    return mk_status_handler_may_have_body(answer->status) &&
           (text.p[0] != '"' || parse_quoted(text, buf, &answer->text));
}

static const struct mk_builtin_handler known[] = {
    {&mk_static, NULL, "/* static"},
    {&mk_redirect, bind_redirect, "/old/* redirect 301 /new/"},
    {&mk_status_handler, bind_status, "/old/* status 410"},
};

const struct mk_builtin_handler *mk_builtin_handler_at(size_t i)
{
    return i < MK_LEN(known) ? &known[i] : NULL;
}

const struct mk_builtin_handler *mk_builtin_handler_find(mk_str name)
{
    for (size_t i = 0; i < MK_LEN(known); i++)
        if (mk_str_eq_nocase(mk_str_from_c(known[i].handler->name), name))
            return &known[i];
    return NULL;
}
