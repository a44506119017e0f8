/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case asks a fresh `site`. */
#ifndef MK_UNIT_WEB_SITE_CASE_H
#define MK_UNIT_WEB_SITE_CASE_H

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static inline int start(void **state)
{
    (void)state;
    site_init(&site);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    site_fini(&site);
    return 0;
}

#endif
