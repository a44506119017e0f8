/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the server once, before any load, whether it answers as it should. */
#ifndef WR_CHECK_H
#define WR_CHECK_H

#include "wr/answer.h"
#include "wr/url.h"

struct wr_expected {
    unsigned status; /* 0: 200 */
    bool has_length, has_sha1;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

struct wr_checked {
    unsigned status;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* False when there is no answer, or another one, which was said. `fields` are lines "Name: value" that are
 * sent too, up to NULL. */
bool wr_check(const struct wr_url *url, char *const *fields, const struct wr_expected *expected,
              struct wr_checked *out) MK_MUST_USE;
/* Compares, and says what differs. */
bool wr_check_matches(const struct wr_checked *got, const struct wr_expected *expected,
                      mk_str url) MK_MUST_USE;
/* 40 hexadecimal digits. */
bool wr_check_parse_sha1(mk_str text, unsigned char out[MK_SHA1_LEN]) MK_MUST_USE;

#endif
