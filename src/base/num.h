/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers: strict parsing and formatting, overflow-checked sums. */
#ifndef MK_BASE_NUM_H
#define MK_BASE_NUM_H

#include "base/str.h"

enum { MK_NUM_MAX = 20 }; /* digits of UINT64_MAX */
/* Returns the number of decimal digits of n. */
size_t mk_num_len(uint64_t n);
/* Writes the decimal digits to `out`, which must have space for them (at most MK_NUM_MAX), and returns their
 * number. */
size_t mk_num_write(char *out, uint64_t n);
/* Writes the decimal digits in front of `end`. */
static inline void mk_num_write_before(char *end, uint64_t n)
{
    do {
        *--end = (char)('0' + n % 10);
        n /= 10;
    } while (n);
}
size_t mk_num_write_hex(char *out, uint64_t n);
/* Writes exactly `width` digits, with leading zeros. */
void mk_num_write_padded(char *out, unsigned n, unsigned width);

static inline bool mk_num_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

#endif
