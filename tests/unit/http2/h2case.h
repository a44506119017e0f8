/* SPDX-License-Identifier: Apache-2.0 */
/* For tests with one connection each: start() or start_open() opens it, harness_teardown() closes it. */
#ifndef MK_UNIT_HTTP2_H2CASE_H
#define MK_UNIT_HTTP2_H2CASE_H

#include "unit/http2/h2talk.h"

static struct h2talk h;

static inline void setup(void)
{
    h2talk_setup(&h);
}

static inline void setup_open(void)
{
    setup();
    h2talk_open(&h);
}

#endif
