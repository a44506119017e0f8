/* SPDX-License-Identifier: Apache-2.0 */
/* Byte ranges (RFC 9110, section 14). */
#ifndef MK_HTTP_RANGE_H
#define MK_HTTP_RANGE_H

#include "base/str.h"

/* Inclusive: first <= last < size. */
struct mk_range {
    uint64_t first, last;
};

/* Parses the value of Range for a representation of `size` bytes into `out`, which holds `max` ranges.
 * Returns
 *
 *   > 0  the number of ranges, in the order of the header. Ranges that overlap or touch are merged; the
 *        result takes the place of the first of them
 *     0  ignore the header: it has another unit, is malformed, or has more than `max` ranges, or the
 *        representation is empty
 *  -416  no range can be satisfied */
int mk_range_parse(mk_str value, uint64_t size, struct mk_range *out, unsigned max) MK_MUST_USE;

#endif
