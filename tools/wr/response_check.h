/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the server once, before any load, whether it answers as it should. */
#ifndef WR_RESPONSE_CHECK_H
#define WR_RESPONSE_CHECK_H

#include "load/option.h"
#include "load/url.h"

struct wr_check_result {
    unsigned status;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* False, with a message, without an answer or with a different one. `fields`: further lines "Name: value"
 * to send, up to NULL. */
bool wr_check(const struct load_url *url, char *const *fields, const struct load_expected *expected,
              struct wr_check_result *out) MK_MUST_USE;
/* Compares, and prints what differs. Without a named status, 200 is expected. */
bool wr_check_compare(const struct wr_check_result *got, const struct load_expected *expected,
                      mk_str url) MK_MUST_USE;

#endif
