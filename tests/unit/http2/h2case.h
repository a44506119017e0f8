/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that need one connection each: it begins with start() or start_open(), and ends with harness_stop(). */
#ifndef MK_UNIT_HTTP2_H2CASE_H
#define MK_UNIT_HTTP2_H2CASE_H

#include "unit/http2/h2talk.h"

HARNESS_EACH(h2talk, struct h2talk, h);

static inline int start_open(void **state)
{
    (void)start(state);
    h2talk_open(&h);
    return 0;
}

#endif
