/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are text: a whole value or individual words, quoted where needed. Between quotes, \" is a quote
 * and \\ a backslash; any other backslash is literal. A quote that is not the first character is also
 * literal. */
#ifndef MK_CONF_WORDS_H
#define MK_CONF_WORDS_H

#include <monkey/config.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* The readers return 0, -EINVAL (an unclosed quote, or text after the closing one) or -ENOMEM. Results are
 * slices of the input where possible, else in the arena. */

/* Returns the whole value or, if it begins with a quote, the text between that quote and the closing one. */
mk_err mk_conf_words_unquote(struct mk_arena *a, mk_str s, mk_str *out) MK_MUST_USE;
/* Takes the next word of *rest; absent at the end. On -EINVAL, *word is the invalid text, and *rest continues
 * after it. */
mk_err mk_conf_words_next(struct mk_arena *a, mk_str *rest, mk_str *word) MK_MUST_USE;
/* Appends every word of `s` except empty ones (""). On -EINVAL, *bad is the invalid text. Only for lists
 * built by this function. */
mk_err mk_conf_words_append(struct mk_arena *a, mk_str s, struct mk_conf_words *words,
                            mk_str *bad) MK_MUST_USE;

/* Writes the text, with quotes only if it would otherwise be parsed differently. */
void mk_conf_words_quote_text(struct mk_buf *out, mk_str s);
void mk_conf_words_quote_word(struct mk_buf *out, mk_str s);

#endif
