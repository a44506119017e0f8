/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

enum { SAFE_DIGITS = 19 }; /* the largest number of digits that cannot overflow */

/* Inlined into both callers. */
static inline bool parse_num(mk_str s, uint64_t *out)
{
    uint64_t n = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        if (MK_LIKELY(i < SAFE_DIGITS))
            n = n * 10 + digit;
        else if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *out = n;
    return true;
}

bool mk_num_parse(mk_str s, uint64_t *out)
{
    return parse_num(s, out);
}

bool mk_num_parse_int(mk_str s, int64_t *out)
{
    bool is_negative = s.len > 0 && s.p[0] == '-';
    uint64_t n;
    if (is_negative)
        s = mk_str_of(s.p + 1, s.len - 1);
    if (!parse_num(s, &n) || n > (uint64_t)INT64_MAX + is_negative)
        return false;
    *out = is_negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

size_t mk_num_len(uint64_t n)
{
    size_t len = 1;
    for (; n >= 10000; n /= 10000)
        len += 4;
    return len + (n >= 10) + (n >= 100) + (n >= 1000);
}

size_t mk_num_write(char *out, uint64_t n)
{
    size_t len = mk_num_len(n);
    mk_num_write_before(out + len, n);
    return len;
}

size_t mk_num_write_hex(char *out, uint64_t n)
{
    char digits[MK_NUM_MAX], *at = digits + sizeof digits;
    do {
        *--at = "0123456789abcdef"[n & 15];
        n >>= 4;
    } while (n);
    size_t len = (size_t)(digits + sizeof digits - at);
    memcpy(out, at, len);
    return len;
}

void mk_num_write_padded(char *out, unsigned n, unsigned width)
{
    while (width > 0) {
        out[--width] = (char)('0' + n % 10);
        n /= 10;
    }
}
