/* SPDX-License-Identifier: Apache-2.0 */
/* Text in values: parses a value as one text or as a list of words, and writes both with quotes where needed.
 * Between quotes, \" is a quote and \\ a backslash; any other backslash is literal. A quote that is not the
 * first character is also literal. */
#ifndef MK_CONF_WORDS_H
#define MK_CONF_WORDS_H

#include <monkey/config.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* The parsers return 0, -EINVAL (an unclosed quote, or text directly after the closing quote) or -ENOMEM.
 * Their results are slices of the input where possible, or else in the arena. */

/* Returns the whole value or, if it begins with a quote, the text between that quote and the closing one. */
mk_err mk_conf_words_unquote(struct mk_arena *a, mk_str s, mk_str *out) MK_MUST_USE;
/* Removes the next word from the front of *rest; *word is absent at the end. On -EINVAL, *word is the invalid
 * text, and *rest continues after it. */
mk_err mk_conf_words_next(struct mk_arena *a, mk_str *rest, mk_str *word) MK_MUST_USE;
/* Appends every word of `s` except empty ones (""). On -EINVAL, *bad is the invalid text. `words` must be
 * empty, or a list that only this function has filled. */
mk_err mk_conf_words_append(struct mk_arena *a, mk_str s, struct mk_conf_words *words,
                            mk_str *bad) MK_MUST_USE;

/* Is it a quote, a backslash or a blank? Reading and writing text may add or remove these bytes. */
bool mk_conf_words_is_syntax(char c);

/* Writes a whole value or a word, with quotes only if it would otherwise be parsed differently. */
void mk_conf_words_quote_text(struct mk_buf *out, mk_str s);
void mk_conf_words_quote_word(struct mk_buf *out, mk_str s);

#endif
