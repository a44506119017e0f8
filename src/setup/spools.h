/* SPDX-License-Identifier: Apache-2.0 */
/* Whether content that routes spool fits into the spool. */
#ifndef MK_SETUP_SPOOLS_H
#define MK_SETUP_SPOOLS_H

#include "settings/generation_type.h"

/* Warns where MaxBodySize allows what one client may never spool. Call it when all routes are bound. */
void mk_spools_check(const struct mk_generation *g, struct mk_conf_report *report);

#endif
