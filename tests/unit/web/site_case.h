/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has its own `site`. */
#ifndef MK_UNIT_WEB_SITE_CASE_H
#define MK_UNIT_WEB_SITE_CASE_H

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static inline void setup(void)
{
    site_setup(&site);
}

#endif
