/* SPDX-License-Identifier: Apache-2.0 */
#include "http/trace_context.h"

#include <string.h>

#include "base/codec.h"

enum { KEY_MAX = 256, VALUE_MAX = 256, LONG_MEMBER = 128 };

/* ---- traceparent ---- */

/* Only lower-case digits are valid. -1: none. */
static int hex_digit_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes `n` bytes. *bits is the OR of all of them. False: a character is not a digit. */
static bool decode_hex(const char *text, unsigned char *out, size_t n, unsigned *bits)
{
    *bits = 0;
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit_value(text[2 * i]), low = hex_digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
        *bits |= out[i];
    }
    return true;
}

bool mk_traceparent_parse(mk_str text, struct mk_traceparent *out)
{
    unsigned char version, flags;
    unsigned bits;
    const char *p = text.p;
    if (text.len < MK_TRACEPARENT_LEN || p[2] != '-' || p[35] != '-' || p[52] != '-')
        return false;
    if (!decode_hex(p, &version, 1, &bits) || version == 0xff)
        return false;
    if (text.len > MK_TRACEPARENT_LEN && (version == 0 || p[MK_TRACEPARENT_LEN] != '-'))
        return false;
    if (!decode_hex(p + 3, out->trace_id, sizeof out->trace_id, &bits) || !bits)
        return false;
    if (!decode_hex(p + 36, out->span_id, sizeof out->span_id, &bits) || !bits)
        return false;
    if (!decode_hex(p + 53, &flags, 1, &bits))
        return false;
    out->flags = flags;
    return true;
}

void mk_traceparent_format(const struct mk_traceparent *parent, char out[MK_TRACEPARENT_LEN])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "00-", 3);
    mk_codec_hex_8(out + 3, parent->trace_id);
    mk_codec_hex_8(out + 19, parent->trace_id + 8);
    mk_codec_hex_8(out + 36, parent->span_id);
    out[35] = out[52] = '-';
    out[53] = digits[parent->flags >> 4 & 15];
    out[54] = digits[parent->flags & 15];
}

/* ---- tracestate ---- */

static bool is_key_char(char c, bool is_first)
{
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        return true;
    return !is_first && (c == '_' || c == '-' || c == '*' || c == '/' || c == '@');
}

static bool is_valid_key(mk_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (!is_key_char(key.p[i], i == 0))
            return false;
    return key.len > 0 && key.len <= KEY_MAX;
}

static bool is_valid_value(mk_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.p[i] < ' ' || value.p[i] > '~' || value.p[i] == ',' || value.p[i] == '=')
            return false;
    return value.len <= VALUE_MAX;
}

static mk_str key_of_member(mk_str member)
{
    return mk_str_first(member, mk_str_find(member, '='));
}

static bool has_key(const struct mk_tracestate *state, mk_str key)
{
    for (unsigned i = 0; i < state->n; i++)
        if (mk_str_eq(key_of_member(state->members[i]), key))
            return true;
    return false;
}

bool mk_tracestate_add_line(struct mk_tracestate *state, mk_str line)
{
    while (line.p) {
        mk_str member = mk_str_trim(mk_str_cut(&line, ',')), value = member, key = mk_str_cut(&value, '=');
        if (!member.len)
            continue;
        if (!value.p || !is_valid_key(key) || !is_valid_value(value) || has_key(state, key) ||
            state->n == MK_TRACESTATE_MEMBERS_MAX)
            return false;
        state->members[state->n++] = member;
    }
    return true;
}

static size_t members_len(const struct mk_tracestate *state)
{
    size_t len = state->n ? state->n - 1 : 0;
    for (unsigned i = 0; i < state->n; i++)
        len += state->members[i].len;
    return len;
}

void mk_tracestate_format(const struct mk_tracestate *state, struct mk_buf *out)
{
    bool is_long = members_len(state) > MK_TRACESTATE_LEN_MAX;
    size_t from = out->len;
    for (unsigned i = 0; i < state->n; i++) {
        mk_str member = state->members[i];
        if (is_long && member.len > LONG_MEMBER)
            continue;
        size_t comma = out->len > from;
        if (out->len - from + comma + member.len > MK_TRACESTATE_LEN_MAX)
            return;
        mk_buf_add(out, comma ? MK_STR(",") : MK_STR(""));
        mk_buf_add(out, member);
    }
}
