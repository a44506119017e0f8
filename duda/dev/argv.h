/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the argument list of a program. */
#ifndef DUDA_DEV_ARGV_H
#define DUDA_DEV_ARGV_H

#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_ARGV_MAX = 256, DEV_ARGV_TEXT_MAX = 64 * 1024 };

/* Holds at most DEV_ARGV_MAX words; dev_argv_to_array() reports an overflow. */
struct dev_argv {
    struct mk_buf text; /* all words, each followed by a NUL */
    size_t n;
    char **envp; /* environment of the program; NULL: that of this process */
};

void dev_argv_init(struct dev_argv *w);
void dev_argv_free(struct dev_argv *w);
void dev_argv_add(struct dev_argv *w, mk_str word);
void dev_argv_addf(struct dev_argv *w, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* Returns the next word, which ends at a blank or line ending; empty if there is none. */
mk_str dev_argv_next_word(mk_str *text);
/* Splits the text at blanks and adds each word; quotes have no special meaning. */
void dev_argv_add_split(struct dev_argv *w, mk_str text);
/* Fills a NULL-terminated array of pointers into `w`. Returns false if there are too many words. */
bool dev_argv_to_array(struct dev_argv *w, char *argv[DEV_ARGV_MAX + 1]);

#endif
