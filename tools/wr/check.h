/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the server once, before any load, whether it answers as it should. */
#ifndef WR_CHECK_H
#define WR_CHECK_H

#include "load/option.h"
#include "load/url.h"

struct wr_checked {
    unsigned status;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* False when there is no answer, or another one, which was said. `fields` are lines "Name: value" that are
 * sent too, up to NULL. */
bool wr_check(const struct load_url *url, char *const *fields, const struct load_expected *expected,
              struct wr_checked *out) MK_MUST_USE;
/* Compares, and says what differs. A status that nobody named is 200. */
bool wr_check_matches(const struct wr_checked *got, const struct load_expected *expected,
                      mk_str url) MK_MUST_USE;

#endif
