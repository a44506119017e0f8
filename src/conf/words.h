/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are text: as a whole or word by word, with quotes around what would not survive without.
 * Between quotes
 * \" is a quote and \\ a backslash; any other backslash is itself. A quote that does not come first is
 * itself, too. */
#ifndef MK_CONF_WORDS_H
#define MK_CONF_WORDS_H

#include <monkey/config.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* The readers answer 0, -EINVAL (a quote is not closed, or what closes it does not end the word) or -ENOMEM.
 * What comes out is a slice of what went in where possible, else in the arena. */

/* The value as it is or, if it begins with a quote, what stands between that quote and the one that ends it.
 */
mk_err mk_conf_words_text(struct mk_arena *a, mk_str s, mk_str *out) MK_MUST_USE;
/* Takes the next word of *rest; absent at the end. On -EINVAL *word is what was wrong, and *rest goes on
 * behind it. */
mk_err mk_conf_words_next(struct mk_arena *a, mk_str *rest, mk_str *word) MK_MUST_USE;
/* Appends every word of `s`; empty ones ("") are left out. On -EINVAL *bad is what was wrong. Only for lists
 * that are made by this function. */
mk_err mk_conf_words_add(struct mk_arena *a, mk_str s, struct mk_conf_words *words, mk_str *bad) MK_MUST_USE;

/* In quotes only where it would not read back without them. */
void mk_conf_words_write_text(struct mk_buf *out, mk_str s);
void mk_conf_words_write_word(struct mk_buf *out, mk_str s);

#endif
