/* SPDX-License-Identifier: Apache-2.0 */
/* Parses option values: numbers, and the expected status, length and SHA-1 of a response. */
#ifndef LOAD_OPTION_H
#define LOAD_OPTION_H

#include "base/compiler.h"
#include "base/sha1.h"

/* Reports an error in the style of the program; always returns false. */
typedef bool load_report_error(const char *fmt, ...) MK_PRINTF(1, 2);

struct load_expected {
    unsigned status; /* 0: not given */
    bool has_length, has_sha1;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* On an invalid value, reports the name of the option and returns false. */
bool load_option_parse_number(load_report_error *refuse, const char *name, const char *text, uint64_t least,
                              uint64_t most, uint64_t *out) MK_MUST_USE;
/* Like load_option_parse_number(), but for --status, --length and --sha1. */
bool load_option_parse_status(load_report_error *refuse, const char *text,
                              struct load_expected *out) MK_MUST_USE;
bool load_option_parse_length(load_report_error *refuse, const char *text,
                              struct load_expected *out) MK_MUST_USE;
bool load_option_parse_sha1(load_report_error *refuse, const char *text,
                            struct load_expected *out) MK_MUST_USE;

#endif
