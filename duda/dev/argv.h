/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line that grows: arguments of a program that is about to be started. */
#ifndef DUDA_DEV_ARGV_H
#define DUDA_DEV_ARGV_H

#include <monkey/buf.h>
#include <stdbool.h>

enum { DEV_ARGV_MAX = 256, DEV_ARGV_TEXT_MAX = 64 * 1024 };

/* At most DEV_ARGV_MAX words; what does not fit makes it fail, which dev_argv_to_array() tells. */
struct dev_argv {
    struct mk_buf text; /* each word, followed by a NUL */
    size_t n;
};

void dev_argv_init(struct dev_argv *w);
void dev_argv_free(struct dev_argv *w);
void dev_argv_add(struct dev_argv *w, mk_str word);
void dev_argv_addf(struct dev_argv *w, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The next word between blanks and ends of lines; empty: there is none. */
mk_str dev_argv_next_word(mk_str *text);
/* Each word between blanks; quotes have no meaning. */
void dev_argv_add_split(struct dev_argv *w, mk_str text);
/* Ended by NULL; points into `w`. False: there are too many. */
bool dev_argv_to_array(struct dev_argv *w, char *argv[DEV_ARGV_MAX + 1]);

#endif
