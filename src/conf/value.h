/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and writes numbers and booleans. Written values parse back to the same value. */
#ifndef MK_CONF_VALUE_H
#define MK_CONF_VALUE_H

#include "base/buf.h"
#include "base/err.h"

/* The parsers return 0, -EINVAL (invalid syntax) or -ERANGE (the value does not fit in 64 bits). They store
 * the value only if they return 0. */

/* Parses on, yes or true, and off, no or false, ignoring case. */
mk_err mk_conf_value_parse_bool(mk_str s, bool *out) MK_MUST_USE;
/* Parses decimal digits. */
mk_err mk_conf_value_parse_num(mk_str s, uint64_t *out) MK_MUST_USE;
/* Parses digits and B, K, M or G (powers of 1024), ignoring case. A bare number is multiplied by `unit` bytes
 * (0 means 1). */
mk_err mk_conf_value_parse_size(mk_str s, uint64_t unit, uint64_t *bytes) MK_MUST_USE;
/* Parses digits and ms, s, m, h or d, ignoring case. A bare number is multiplied by `unit` milliseconds (0
 * means 1000). */
mk_err mk_conf_value_parse_time(mk_str s, uint64_t unit, uint64_t *ms) MK_MUST_USE;

/* Writes the value with the largest unit that divides it: 10K, 1500ms. `unit` is the unit of a bare number:
 * if it is 1 or 0, a size that is not a multiple of 1K is written without a suffix. */
void mk_conf_value_write_size(struct mk_buf *out, uint64_t bytes, uint64_t unit);
void mk_conf_value_write_time(struct mk_buf *out, uint64_t ms);

#endif
