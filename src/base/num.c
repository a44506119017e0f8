/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

static bool parse_base(mk_str s, unsigned base, uint64_t *out)
{
    uint64_t n = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        int digit = mk_char_hex(s.p[i]);
        if (digit < 0 || (unsigned)digit >= base)
            return false;
        if (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, (unsigned)digit, &n))
            return false;
    }
    *out = n;
    return true;
}

bool mk_num_parse(mk_str s, uint64_t *out)
{
    return parse_base(s, 10, out);
}

bool mk_num_parse_hex(mk_str s, uint64_t *out)
{
    return parse_base(s, 16, out);
}

static size_t write_base(char *out, uint64_t n, unsigned base)
{
    char digits[MK_NUM_MAX];
    size_t len = 0;
    do {
        digits[len++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    for (size_t i = 0; i < len; i++)
        out[i] = digits[len - 1 - i];
    return len;
}

size_t mk_num_write(char *out, uint64_t n)
{
    return write_base(out, n, 10);
}

size_t mk_num_write_hex(char *out, uint64_t n)
{
    return write_base(out, n, 16);
}

void mk_num_write_padded(char *out, unsigned n, unsigned width)
{
    while (width > 0) {
        out[--width] = (char)('0' + n % 10);
        n /= 10;
    }
}
