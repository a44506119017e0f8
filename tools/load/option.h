/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: numbers, and what is expected of an answer. */
#ifndef LOAD_OPTION_H
#define LOAD_OPTION_H

#include "base/compiler.h"
#include "base/sha1.h"

/* Says what is wrong, in the program's own way; always false. */
typedef bool load_refuse(const char *fmt, ...) MK_PRINTF(1, 2);

struct load_expected {
    unsigned status; /* 0: not said */
    bool has_length, has_sha1;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* False: `text` is wrong, and was reported with the name of the option. */
bool load_option_number(load_refuse *refuse, const char *name, const char *text, uint64_t least,
                        uint64_t most, uint64_t *out) MK_MUST_USE;
/* The same for --status, --length and --sha1. */
bool load_option_status(load_refuse *refuse, const char *text, struct load_expected *out) MK_MUST_USE;
bool load_option_length(load_refuse *refuse, const char *text, struct load_expected *out) MK_MUST_USE;
bool load_option_sha1(load_refuse *refuse, const char *text, struct load_expected *out) MK_MUST_USE;

#endif
