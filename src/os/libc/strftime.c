/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces strftime() of the C library in small static programs (MK_SMALL_LIBC). Supports the conversions b,
 * d, H, m, M, S, Y and z. */
#include <stdio.h>
#include <string.h>
#include <time.h>

static int format_one(char *buf, size_t size, char type, const struct tm *t)
{
    long offset = t->tm_gmtoff / 60;
    switch (type) {
    case 'Y':
        return snprintf(buf, size, "%d", t->tm_year + 1900);
    case 'm':
        return snprintf(buf, size, "%02d", t->tm_mon + 1);
    case 'd':
        return snprintf(buf, size, "%02d", t->tm_mday);
    case 'H':
        return snprintf(buf, size, "%02d", t->tm_hour);
    case 'M':
        return snprintf(buf, size, "%02d", t->tm_min);
    case 'S':
        return snprintf(buf, size, "%02d", t->tm_sec);
    case 'b':
        return snprintf(buf, size, "%.3s", "JanFebMarAprMayJunJulAugSepOctNovDec" + 3 * t->tm_mon);
    case 'z':
        return snprintf(buf, size, "%c%02ld%02ld", offset < 0 ? '-' : '+',
                        (offset < 0 ? -offset : offset) / 60, (offset < 0 ? -offset : offset) % 60);
    default:
        return snprintf(buf, size, "%c", type);
    }
}

size_t strftime(char *restrict buf, size_t size, const char *restrict format, const struct tm *restrict t)
{
    size_t n = 0;
    for (; *format && n < size; format++) {
        if (*format == '%' && format[1])
            n += (size_t)format_one(buf + n, size - n, *++format, t);
        else
            buf[n++] = *format;
    }
    if (n >= size)
        return 0;
    buf[n] = '\0';
    return n;
}
