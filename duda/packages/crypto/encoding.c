/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes base64url and hexadecimal digits. */
#include <duda/crypto.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void duda_base64url_encode(struct mk_buf *out, mk_str s)
{
    unsigned have = 0, bits = 0;
    for (size_t i = 0; i < s.len; i++) {
        bits = (bits << 8 | (uint8_t)s.p[i]) & 0xffff;
        for (have += 8; have >= 6; have -= 6)
            mk_buf_add_char(out, letters[bits >> (have - 6) & 63]);
    }
    if (have)
        mk_buf_add_char(out, letters[bits << (6 - have) & 63]);
}

static int base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool duda_base64url_decode(struct mk_buf *out, mk_str s)
{
    unsigned have = 0, bits = 0;
    if (s.len % 4 == 1)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        int value = base64url_value(s.p[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (unsigned)value) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            mk_buf_add_char(out, (char)(bits >> have));
        }
    }
    return (bits & ((1U << have) - 1)) == 0 && !out->failed;
}

bool duda_hex_decode(struct mk_buf *out, mk_str s)
{
    if (s.len % 2)
        return false;
    for (size_t i = 0; i < s.len; i += 2) {
        int high = mk_char_hex(s.p[i]), low = mk_char_hex(s.p[i + 1]);
        if (high < 0 || low < 0)
            return false;
        mk_buf_add_char(out, (char)(high << 4 | low));
    }
    return !out->failed;
}
