/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#include <errno.h>
#include <monkey/utf8.h>
#include <sys/random.h>

#include "base/assert.h"

enum { LOG_CHAR_MAX = 4, JSON_CHAR_MAX = 8 }; /* longest output for one character of input */

static const char hex_digits[] = "0123456789abcdef", upper_hex_digits[] = "0123456789ABCDEF";

/* ---- HTML and URLs ---- */

static mk_str html_entity(char c)
{
    switch (c) {
    case '&':
        return MK_STR("&amp;");
    case '<':
        return MK_STR("&lt;");
    case '>':
        return MK_STR("&gt;");
    case '"':
        return MK_STR("&quot;");
    default:
        return MK_STR("&#39;");
    }
}

#define BIT(c) (UINT64_C(1) << (c))

/* The codes of all characters with an entity are below 64, so a 64-bit mask holds them. */
static bool needs_html_escape(char c)
{
    unsigned char at = (unsigned char)c;
    return at <= '>' && (BIT(at) & (BIT('&') | BIT('<') | BIT('>') | BIT('"') | BIT('\'')));
}

void mk_html_escape(struct mk_buf *out, mk_str s)
{
    size_t plain = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!needs_html_escape(s.p[i]))
            continue;
        mk_str reference = html_entity(s.p[i]);
        mk_buf_add(out, mk_str_of(s.p + plain, i - plain));
        mk_buf_add(out, reference);
        plain = i + 1;
    }
    mk_buf_add(out, mk_str_skip(s, plain));
}

static bool is_unreserved(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void escape_for_url(struct mk_buf *out, mk_str s, bool keeps_slashes)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (is_unreserved((char)c) || (c == '/' && keeps_slashes)) {
            mk_buf_add_char(out, (char)c);
        } else {
            char escape[3] = {'%', upper_hex_digits[c >> 4], upper_hex_digits[c & 15]};
            mk_buf_add(out, mk_str_of(escape, sizeof escape));
        }
    }
}

void mk_url_escape(struct mk_buf *out, mk_str s)
{
    escape_for_url(out, s, true);
}

void mk_url_escape_component(struct mk_buf *out, mk_str s)
{
    escape_for_url(out, s, false);
}

bool mk_url_unescape(struct mk_buf *out, mk_str s)
{
    for (size_t at = mk_str_find(s, '%'); at != MK_STR_NONE; at = mk_str_find(s, '%')) {
        int high = at + 2 < s.len ? mk_char_hex(s.p[at + 1]) : -1;
        int low = at + 2 < s.len ? mk_char_hex(s.p[at + 2]) : -1;
        mk_buf_add(out, mk_str_first(s, at));
        if (high < 0 || low < 0)
            return false;
        mk_buf_add_char(out, (char)(high << 4 | low));
        s = mk_str_skip(s, at + 3);
    }
    mk_buf_add(out, s);
    return true;
}

/* ---- Logs and JSON ---- */

static bool is_plain_char(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Tests eight bytes at once, with the well-known bit tricks for "any byte is zero" and "any byte is below
 * n". */
static bool are_8_bytes_plain(uint64_t x)
{
    uint64_t quote = x ^ EACH('"'), backslash = x ^ EACH('\\'), del = x ^ EACH(0x7f);
    uint64_t odd = ((x - EACH(0x20)) & ~x) | ((quote - EACH(1)) & ~quote) |
                   ((backslash - EACH(1)) & ~backslash) | ((del - EACH(1)) & ~del) | x;
    return (odd & EACH(0x80)) == 0;
}

static uint64_t load_8_bytes(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Loads all bytes of a string of 1 to 7 bytes, some of them twice. */
static uint64_t load_1_to_7_bytes(mk_str s)
{
    uint32_t first, last;
    if (s.len < 4) {
        unsigned char a = (unsigned char)s.p[0], b = (unsigned char)s.p[s.len / 2],
                      c = (unsigned char)s.p[s.len - 1];
        return EACH('a') << 24 | (uint64_t)c << 16 | (uint64_t)b << 8 | a;
    }
    memcpy(&first, s.p, sizeof first);
    memcpy(&last, s.p + s.len - sizeof last, sizeof last);
    return (uint64_t)last << 32 | first;
}

/* The test of the last eight bytes may overlap the previous test. */
static bool is_plain(mk_str s)
{
    size_t n = 0;
    if (s.len < 8)
        return s.len == 0 || are_8_bytes_plain(load_1_to_7_bytes(s));
    for (; s.len - n > 8; n += 8)
        if (!are_8_bytes_plain(load_8_bytes(s.p + n)))
            return false;
    return are_8_bytes_plain(load_8_bytes(s.p + s.len - 8));
}

size_t mk_codec_plain_len(mk_str s)
{
    size_t n = 0;
    if (is_plain(s))
        return s.len;
    while (s.len - n >= 8 && are_8_bytes_plain(load_8_bytes(s.p + n)))
        n += 8;
    while (n < s.len && is_plain_char(s.p[n]))
        n++;
    return n;
}

/* Appends the longest prefix that needs no escaping, but leaves space for one escaped character. Afterwards
 * *s starts with a character to escape, or with a character that does not fit. */
static void append_plain_run(struct mk_buf *out, mk_str *s, size_t end, size_t char_max)
{
    size_t buf = end > out->len + char_max ? end - out->len - char_max : 0;
    size_t n = mk_min(mk_codec_plain_len(*s), buf);
    mk_buf_put(out, mk_str_first(*s, n));
    *s = mk_str_skip(*s, n);
}

void mk_log_escape_to(struct mk_buf *out, mk_str s, size_t end)
{
    for (;;) {
        append_plain_run(out, &s, end, LOG_CHAR_MAX);
        if (s.len == 0 || out->len + LOG_CHAR_MAX >= end || out->failed)
            return;
        unsigned char c = (unsigned char)s.p[0];
        char escape[4] = {'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]};
        mk_buf_add(out, mk_str_of(escape, sizeof escape));
        s = mk_str_skip(s, 1);
    }
}

void mk_log_escape(struct mk_buf *out, mk_str s)
{
    mk_log_escape_to(out, s, SIZE_MAX);
}

/* Appends the first character, c, of `s`; len == 0: c is a byte of invalid UTF-8, read as Latin-1. Escapes
 * control characters, also U+0080 to U+009F, because a terminal may interpret them. */
static void append_json_escaped(struct mk_buf *out, mk_str s, size_t len, uint32_t c)
{
    if (c == '"' || c == '\\')
        mk_buf_add_char(out, '\\');
    if (len == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0))
        mk_buf_addf(out, "\\u%04x", c);
    else
        mk_buf_add(out, mk_str_first(s, len));
}

void mk_json_escape_to(struct mk_buf *out, mk_str s, size_t end)
{
    for (;;) {
        if (s.len && (unsigned char)s.p[0] < 0x80)
            append_plain_run(out, &s, end, JSON_CHAR_MAX);
        if (s.len == 0 || out->len + JSON_CHAR_MAX >= end || out->failed)
            return;
        uint32_t c;
        size_t len = mk_utf8_decode(s, &c);
        append_json_escaped(out, s, len, c);
        s = mk_str_skip(s, len ? len : 1);
    }
}

/* ---- Bytes as text ---- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void mk_base64_encode(struct mk_buf *out, mk_str s)
{
    for (size_t i = 0; i < s.len; i += 3) {
        size_t n = mk_min(s.len - i, 3);
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < n ? (unsigned char)s.p[i + j] : 0);
        char four[4];
        for (size_t j = 0; j < 4; j++)
            four[j] = j <= n ? base64_digits[bits >> (18 - 6 * j) & 63] : '=';
        mk_buf_add(out, mk_str_of(four, sizeof four));
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (mk_char_is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Strips the padding only if it is complete. */
static mk_str strip_base64_padding(mk_str s)
{
    size_t n = s.len;
    if (s.len % 4 || s.len == 0)
        return s;
    while (n > s.len - 2 && s.p[n - 1] == '=')
        n--;
    return mk_str_first(s, n);
}

bool mk_base64_decode(struct mk_buf *out, mk_str s)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    s = strip_base64_padding(s);
    if (s.len % 4 == 1)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        int value = base64_value(s.p[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            mk_buf_add_char(out, (char)(bits >> n_bits & 0xff));
        }
    }
    return (bits & ((1u << n_bits) - 1)) == 0; /* the leftover bits encode no byte and must be zero */
}

/* The compiler uses vector instructions. */
void mk_codec_hex_8(char out[16], const void *in)
{
    typedef uint8_t bytes __attribute__((vector_size(8)));
    typedef uint16_t pairs __attribute__((vector_size(16)));
    typedef int8_t digits __attribute__((vector_size(16)));
    bytes input;
    memcpy(&input, in, sizeof input);
    pairs wide = __builtin_convertvector(input, pairs), high = wide >> 4, low = wide & 15;
    bool is_little_endian =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; /* the first byte of a pair is `high` */
    digits values = (digits)(is_little_endian ? high | low << 8 : high << 8 | low);
    digits text = values + '0' + ((values > 9) & ('a' - '0' - 10));
    memcpy(out, &text, sizeof text);
}

void mk_hex_encode(struct mk_buf *out, mk_str s)
{
    MK_ASSERT(s.len <= SIZE_MAX / 2); /* no string is that long */
    if (!mk_buf_reserve(out, 2 * s.len))
        return;
    char *at = out->p + out->len;
    size_t i = 0;
    for (; s.len - i >= 8; i += 8, at += 16)
        mk_codec_hex_8(at, s.p + i);
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        *at++ = hex_digits[c >> 4];
        *at++ = hex_digits[c & 15];
    }
    out->len += 2 * s.len;
}

/* ---- Secrets ---- */

bool mk_consttime_eq(mk_str a, mk_str b)
{
    volatile unsigned char differs = 0; /* volatile: keeps the compiler from ending the loop early */
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        differs = (unsigned char)(differs | (a.p[i] ^ b.p[i]));
    return differs == 0;
}

void mk_random(void *buf, size_t size)
{
    char *at = buf;
    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        MK_ASSERT(n > 0 || errno == EINTR); /* getrandom does not fail on supported kernels, and there is no
                                               acceptable fallback */
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
}
