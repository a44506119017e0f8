/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has its own fresh talk `t`. */
#ifndef MK_UNIT_CONNECTION_TALK_CASE_H
#define MK_UNIT_CONNECTION_TALK_CASE_H

#include "unit/connection/talk.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct talk t;

static inline void setup(void)
{
    talk_setup(&t);
}

#endif
