/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one request before any load and checks the response. */
#ifndef WR_RESPONSE_CHECK_H
#define WR_RESPONSE_CHECK_H

#include "load/option.h"
#include "load/url.h"

struct wr_check_result {
    unsigned status;
    uint64_t length;
    unsigned char sha1[MK_SHA1_LEN];
};

/* Prints a message and returns false if there is no response or a wrong one. `fields`: additional header
 * lines "Name: value", NULL-terminated. */
bool wr_response_check_run(const struct load_url *url, char *const *fields,
                           const struct load_expected *expected, struct wr_check_result *out) MK_MUST_USE;
/* Prints the first difference. The default status is 200. */
bool wr_response_check_compare(const struct wr_check_result *got, const struct load_expected *expected,
                               mk_str url) MK_MUST_USE;

#endif
