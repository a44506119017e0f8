/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has a connection of its own, `t`. */
#ifndef MK_UNIT_CONNECTION_CONN_CASE_H
#define MK_UNIT_CONNECTION_CONN_CASE_H

#include "unit/connection/fixture.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct conn_fixture t;

static inline void setup(void)
{
    conn_setup(&t);
}

#endif
