/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line that grows: arguments of a program that is about to be started. */
#ifndef DUDA_DEV_WORDS_H
#define DUDA_DEV_WORDS_H

#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_WORDS_MAX = 256, DEV_WORDS_TEXT = 64 * 1024 };

/* At most DEV_WORDS_MAX words; what does not fit makes it fail, which dev_words_argv() tells. */
struct dev_words {
    struct mk_buf text; /* each word, followed by a NUL */
    size_t n;
};

void dev_words_init(struct dev_words *w);
void dev_words_free(struct dev_words *w);
void dev_words_add(struct dev_words *w, mk_str word);
void dev_words_addf(struct dev_words *w, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The next word between blanks and ends of lines; empty: there is none. */
mk_str dev_words_cut(mk_str *text);
/* Each word between blanks; quotes have no meaning. */
void dev_words_split(struct dev_words *w, mk_str text);
/* Ended by NULL; points into `w`. False: there are too many. */
bool dev_words_argv(struct dev_words *w, char *argv[DEV_WORDS_MAX + 1]);

#endif
