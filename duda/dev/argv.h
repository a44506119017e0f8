/* SPDX-License-Identifier: Apache-2.0 */
/* A growing argument list for a program to be started. */
#ifndef DUDA_DEV_ARGV_H
#define DUDA_DEV_ARGV_H

#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_ARGV_MAX = 256, DEV_ARGV_TEXT_MAX = 64 * 1024 };

/* At most DEV_ARGV_MAX words. An overflow is reported by dev_argv_to_array(). */
struct dev_argv {
    struct mk_buf text; /* all words, each followed by a NUL */
    size_t n;
};

void dev_argv_init(struct dev_argv *w);
void dev_argv_free(struct dev_argv *w);
void dev_argv_add(struct dev_argv *w, mk_str word);
void dev_argv_addf(struct dev_argv *w, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The next word between blanks and line endings; empty: none. */
mk_str dev_argv_next_word(mk_str *text);
/* Adds each word between blanks; quotes have no special meaning. */
void dev_argv_add_split(struct dev_argv *w, mk_str text);
/* NULL-terminated; points into `w`. False: too many words. */
bool dev_argv_to_array(struct dev_argv *w, char *argv[DEV_ARGV_MAX + 1]);

#endif
