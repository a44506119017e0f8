/* SPDX-License-Identifier: Apache-2.0 */
/* For tests with one connection each: start() or start_open() opens it, harness_stop() closes it. */
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
