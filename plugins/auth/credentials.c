/* SPDX-License-Identifier: Apache-2.0 */
#include "credentials.h"

#include <monkey/text.h>

mk_str auth_scheme_split(mk_str value, mk_str *rest)
{
    mk_str scheme = mk_str_cut(&value, ' ');
    *rest = value.p ? mk_str_trim(value) : value;
    return scheme;
}

bool auth_has_no_controls(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return true;
}

bool auth_basic_parse(mk_str text, char buf[AUTH_BASIC_BUF_SIZE], struct auth_basic *out)
{
    struct mk_buf decoded = mk_buf_fixed(buf, AUTH_BASIC_BUF_SIZE - 1);
    if (!mk_base64_decode(&decoded, text) || decoded.failed)
        return false;
    buf[decoded.len] = '\0';
    out->password = mk_buf_str(&decoded);
    out->user = mk_str_cut(&out->password, ':');
    return out->password.p && out->password.len <= AUTH_PASSWORD_MAX && auth_has_no_controls(out->user) &&
           auth_has_no_controls(out->password);
}

bool auth_hex_decode(mk_str text, uint8_t *out, size_t size)
{
    if (text.len != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = mk_char_hex(text.p[2 * i]), low = mk_char_hex(text.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static const char *const names[AUTH_PARAMS] = {
    [AUTH_USERNAME] = "username",
    [AUTH_USERNAME_EXT] = "username*",
    [AUTH_REALM] = "realm",
    [AUTH_NONCE] = "nonce",
    [AUTH_URI] = "uri",
    [AUTH_RESPONSE] = "response",
    [AUTH_ALGORITHM] = "algorithm",
    [AUTH_CNONCE] = "cnonce",
    [AUTH_QOP] = "qop",
    [AUTH_NC] = "nc",
    [AUTH_USERHASH] = "userhash",
};

static enum auth_param find_param(mk_str name)
{
    for (unsigned i = 0; i < AUTH_PARAMS; i++)
        if (mk_str_eq_nocase(name, mk_str_from_c(names[i])))
            return (enum auth_param)i;
    return AUTH_PARAMS;
}

/* Gets the text between the quotes, and copies it only if it contains a backslash. */
static bool unquote_string(mk_str quoted, struct mk_buf *buf, mk_str *out)
{
    if (quoted.len < 2 || quoted.p[quoted.len - 1] != '"')
        return false;
    mk_str inner = mk_str_first(mk_str_skip(quoted, 1), quoted.len - 2);
    bool escaped = mk_str_find(inner, '\\') != MK_STR_NONE;
    size_t begin = buf->len;
    for (size_t i = 0; i < inner.len; i++) {
        if (inner.p[i] == '"' || (inner.p[i] == '\\' && ++i == inner.len))
            return false;
        if (escaped)
            mk_buf_add_char(buf, inner.p[i]);
    }
    *out = escaped ? mk_str_skip(mk_buf_str(buf), begin) : inner;
    return auth_has_no_controls(inner) && !buf->failed;
}

static bool parse_param(struct auth_digest *d, mk_str element, struct mk_buf *buf)
{
    mk_str value = element, text;
    mk_str name = mk_str_trim(mk_str_cut(&value, '='));
    if (!value.p || !mk_is_token(name))
        return false;
    value = mk_str_trim(value);
    bool quoted = value.len && value.p[0] == '"';
    if (quoted ? !unquote_string(value, buf, &text) : !mk_is_token(value))
        return false;
    enum auth_param which = find_param(name);
    if (which == AUTH_PARAMS)
        return true; /* unknown parameters must be ignored */
    if (d->at[which].p || (which == AUTH_USERNAME_EXT && quoted))
        return false;
    d->at[which] = quoted ? text : value;
    return true;
}

/* username*=UTF-8'language'J%C3%A4s%C3%B8n (RFC 5987, section 3.2). */
static bool decode_username(struct auth_digest *d, struct mk_buf *buf)
{
    mk_str text = d->at[AUTH_USERNAME_EXT];
    if (!text.p)
        return true;
    mk_str charset = mk_str_cut(&text, '\'');
    mk_str_cut(&text, '\'');
    size_t begin = buf->len;
    if (d->at[AUTH_USERNAME].p || !text.p || !mk_str_eq_nocase(charset, MK_STR("UTF-8")) ||
        !mk_url_unescape(buf, text) || buf->failed)
        return false;
    d->at[AUTH_USERNAME] = mk_str_skip(mk_buf_str(buf), begin);
    return auth_has_no_controls(d->at[AUTH_USERNAME]);
}

bool auth_digest_parse(mk_str text, struct mk_buf *buf, struct auth_digest *out)
{
    static const enum auth_param needed[] = {AUTH_USERNAME, AUTH_REALM,  AUTH_NONCE, AUTH_URI,
                                             AUTH_RESPONSE, AUTH_CNONCE, AUTH_QOP,   AUTH_NC};
    mk_str element;
    *out = (struct auth_digest){0};
    while (mk_header_list_next(&text, &element))
        if (!parse_param(out, element, buf))
            return false;
    if (!decode_username(out, buf))
        return false;
    for (size_t i = 0; i < MK_LEN(needed); i++)
        if (!out->at[needed[i]].p)
            return false;
    return true;
}
