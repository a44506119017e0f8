/* SPDX-License-Identifier: Apache-2.0 */
/* Byte ranges (RFC 9110, section 14). */
#ifndef MK_HTTP_RANGE_H
#define MK_HTTP_RANGE_H

#include "base/str.h"

/* Both ends included: first <= last < size. */
struct mk_range {
    uint64_t first, last;
};

/* Reads the value of Range for a representation of `size` bytes into `out`, room for `max` ranges. Answers
 *
 *   > 0  how many there are. None of them overlaps or touches another: those that did were merged at
 *        the place of the first; otherwise the order is that of the field
 *     0  the field is to be ignored: another unit, malformed, more than `max` specs, or nothing to select
 *        from an empty representation
 *  -416  no range can be satisfied */
int mk_range_parse(mk_str value, uint64_t size, struct mk_range *out, unsigned max) MK_MUST_USE;

#endif
