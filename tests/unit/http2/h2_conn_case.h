/* SPDX-License-Identifier: Apache-2.0 */
/* For tests with one connection each: start() or start_open() opens it, harness_teardown() closes it. */
#ifndef MK_UNIT_HTTP2_H2_CONN_CASE_H
#define MK_UNIT_HTTP2_H2_CONN_CASE_H

#include "unit/http2/fixture.h"

static struct h2_conn h;

static inline void setup(void)
{
    h2_conn_setup(&h);
}

static inline void setup_open(void)
{
    setup();
    h2_conn_open(&h);
}

#endif
