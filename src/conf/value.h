/* SPDX-License-Identifier: Apache-2.0 */
/* One value at a time, from text and to text. What is written here reads back as the same value. */
#ifndef MK_CONF_VALUE_H
#define MK_CONF_VALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct mk_conf_words {
    mk_str *v;
    size_t n;
};

/* The readers answer 0, -EINVAL (not of that form) or -ERANGE (does not fit 64 bits), and write `out` only on
 * 0. */

/* on, yes, true; off, no, false; without case. */
mk_err mk_conf_value_bool(mk_str s, bool *out) MK_MUST_USE;
/* Decimal digits. */
mk_err mk_conf_value_num(mk_str s, uint64_t *out) MK_MUST_USE;
/* Digits and B, K, M or G (powers of 1024), without case; a bare number counts `unit` bytes (0 is 1). */
mk_err mk_conf_value_size(mk_str s, uint64_t unit, uint64_t *bytes) MK_MUST_USE;
/* Digits and ms, s, m or h, without case; a bare number counts `unit` milliseconds (0 is 1000). */
mk_err mk_conf_value_time(mk_str s, uint64_t unit, uint64_t *ms) MK_MUST_USE;

/* A text: either the value as it is, or, if it begins with a quote, what stands between that quote and the
 * one that ends the value. Between quotes \" is a quote and \\ a backslash; any other backslash is itself.
 * -EINVAL: the quote is not closed, or something follows it. A slice of `s` where possible, else in the
 * arena; -ENOMEM. */
mk_err mk_conf_value_text(struct mk_arena *a, mk_str s, mk_str *out) MK_MUST_USE;
/* Takes the next word of *rest: a run without blanks, or a quoted one as above. Absent at the end. On -EINVAL
 * *word is what was wrong, and *rest is behind it. */
mk_err mk_conf_value_word(struct mk_arena *a, mk_str *rest, mk_str *word) MK_MUST_USE;
/* Appends every word of `s`; empty ones ("") are left out. On -EINVAL *bad is what was wrong. */
mk_err mk_conf_value_words(struct mk_arena *a, mk_str s, struct mk_conf_words *words,
                           mk_str *bad) MK_MUST_USE;

/* The largest unit that leaves no rest: 10K, 1500ms. `unit` is what a bare number means to the reader. */
void mk_conf_value_write_size(struct mk_buf *out, uint64_t bytes, uint64_t unit);
void mk_conf_value_write_time(struct mk_buf *out, uint64_t ms);
/* In quotes only where it would not read back without them. */
void mk_conf_value_write_text(struct mk_buf *out, mk_str s);
void mk_conf_value_write_word(struct mk_buf *out, mk_str s);

#endif
