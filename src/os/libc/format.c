/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the formatted output of the C library in small static programs (MK_SMALL_LIBC): the code in musl
 * takes 10 KB, half of it for floating-point numbers. Supports the conversions d, i, u, o, x, X, c, s, p and
 * %, with the flags - and 0, width, precision and length; no code in such a program uses others. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* Destination of the output: a stream, or a buffer that may be too small. */
struct sink {
    char *at;
    size_t size;
    FILE *stream;
    size_t n; /* bytes so far, including those that did not fit */
};

struct conversion {
    bool left, zero;
    int width, precision; /* -1: none */
    int longs;            /* number of `l` length modifiers; `z`, `j` and `t` count as 1, `h` as -1 */
};

static void put(struct sink *s, const char *text, size_t len)
{
    if (s->stream)
        (void)fwrite(text, 1, len, s->stream);
    else if (s->n < s->size)
        memcpy(s->at + s->n, text, len < s->size - s->n ? len : s->size - s->n);
    s->n += len;
}

static void pad(struct sink *s, char with, int n)
{
    for (; n > 0; n--)
        put(s, &with, 1);
}

static void put_field(struct sink *s, const struct conversion *c, const char *text, size_t len)
{
    int missing = c->width - (int)len;
    if (!c->left)
        pad(s, ' ', missing);
    put(s, text, len);
    if (c->left)
        pad(s, ' ', missing);
}

/* Returns the digits, which end at `end`. */
static char *make_digits(char *end, uintmax_t n, unsigned base, const char *digits)
{
    for (; n; n /= base)
        *--end = digits[n % base];
    return end;
}

static void put_number(struct sink *s, struct conversion *c, uintmax_t n, bool negative, char type)
{
    char buf[24], sign[2];
    unsigned base = type == 'o' ? 8 : type == 'x' || type == 'X' || type == 'p' ? 16 : 10;
    char *digits =
        make_digits(buf + sizeof buf, n, base, type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef");
    int len = (int)(buf + sizeof buf - digits), n_sign = 0, least = c->precision < 0 ? 1 : c->precision;
    if (negative)
        sign[n_sign++] = '-';
    if (type == 'p') {
        sign[n_sign++] = '0';
        sign[n_sign++] = 'x';
    }
    if (c->zero && !c->left && c->precision < 0 && least < c->width - n_sign)
        least = c->width - n_sign;
    int zeros = least > len ? least - len : 0, missing = c->width - n_sign - zeros - len;
    if (!c->left)
        pad(s, ' ', missing);
    put(s, sign, (size_t)n_sign);
    pad(s, '0', zeros);
    put(s, digits, (size_t)len);
    if (c->left)
        pad(s, ' ', missing);
}

static const char *parse_number(const char *p, int *n)
{
    for (*n = 0; *p >= '0' && *p <= '9'; p++)
        *n = *n * 10 + (*p - '0');
    return p;
}

static const char *parse_flags(const char *p, struct conversion *c)
{
    for (; *p == '-' || *p == '0'; p++) {
        c->left |= *p == '-';
        c->zero |= *p == '0';
    }
    return p;
}

static const char *parse_length(const char *p, struct conversion *c)
{
    for (;; p++) {
        if (*p == 'l' || *p == 'z' || *p == 'j' || *p == 't')
            c->longs++;
        else if (*p == 'h')
            c->longs--;
        else
            return p;
    }
}

static intmax_t signed_argument(const struct conversion *c, va_list *args)
{
    if (c->longs >= 2)
        return va_arg(*args, long long);
    if (c->longs == 1)
        return va_arg(*args, long);
    int n = va_arg(*args, int);
    return c->longs == -2 ? (signed char)n : c->longs == -1 ? (short)n : n;
}

static uintmax_t unsigned_argument(const struct conversion *c, va_list *args)
{
    if (c->longs >= 2)
        return va_arg(*args, unsigned long long);
    if (c->longs == 1)
        return va_arg(*args, unsigned long);
    unsigned n = va_arg(*args, unsigned);
    return c->longs == -2 ? (unsigned char)n : c->longs == -1 ? (unsigned short)n : n;
}

static void put_signed(struct sink *s, struct conversion *c, intmax_t n)
{
    put_number(s, c, n < 0 ? 0 - (uintmax_t)n : (uintmax_t)n, n < 0, 'd');
}

static void put_text(struct sink *s, const struct conversion *c, const char *text)
{
    if (!text)
        text = "(null)";
    put_field(s, c, text, c->precision < 0 ? strlen(text) : strnlen(text, (size_t)c->precision));
}

static void convert(struct sink *s, struct conversion *c, char type, va_list *args)
{
    char letter;
    switch (type) {
    case 'd':
    case 'i':
        put_signed(s, c, signed_argument(c, args));
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        put_number(s, c, unsigned_argument(c, args), false, type);
        break;
    case 'p':
        put_number(s, c, (uintptr_t)va_arg(*args, void *), false, 'p');
        break;
    case 's':
        put_text(s, c, va_arg(*args, const char *));
        break;
    case 'c':
        letter = (char)va_arg(*args, int);
        put_field(s, c, &letter, 1);
        break;
    default:
        put(s, &type, 1);
        break;
    }
}

static const char *format_one(struct sink *s, const char *p, va_list *args)
{
    struct conversion c = {.precision = -1};
    p = parse_flags(p, &c);
    if (*p == '*') {
        c.width = va_arg(*args, int);
        c.left |= c.width < 0;
        c.width = c.width < 0 ? -c.width : c.width;
        p++;
    } else {
        p = parse_number(p, &c.width);
    }
    if (*p == '.' && p[1] == '*') {
        c.precision = va_arg(*args, int);
        p += 2;
    } else if (*p == '.') {
        p = parse_number(p + 1, &c.precision);
    }
    p = parse_length(p, &c);
    if (!*p)
        return p;
    convert(s, &c, *p, args);
    return p + 1;
}

static int format_all(struct sink *s, const char *p, va_list *args)
{
    while (*p) {
        size_t len = strcspn(p, "%");
        put(s, p, len);
        p += len;
        if (*p)
            p = format_one(s, p + 1, args);
    }
    return (int)s->n;
}

int vsnprintf(char *restrict buf, size_t size, const char *restrict format, va_list args)
{
    struct sink s = {.at = buf, .size = size};
    va_list copy;
    va_copy(copy, args);
    int n = format_all(&s, format, &copy);
    va_end(copy);
    if (size)
        buf[s.n < size ? s.n : size - 1] = '\0';
    return n;
}

int snprintf(char *restrict buf, size_t size, const char *restrict format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buf, size, format, args);
    va_end(args);
    return n;
}

int vfprintf(FILE *restrict stream, const char *restrict format, va_list args)
{
    struct sink s = {.stream = stream};
    va_list copy;
    va_copy(copy, args);
    int n = format_all(&s, format, &copy);
    va_end(copy);
    return ferror(stream) ? -1 : n;
}

int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vfprintf(stream, format, args);
    va_end(args);
    return n;
}

int printf(const char *restrict format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vfprintf(stdout, format, args);
    va_end(args);
    return n;
}
