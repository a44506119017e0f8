/* SPDX-License-Identifier: Apache-2.0 */
/* Whether content that routes spool fits into the spool. */
#ifndef MK_SETUP_SPOOL_CHECK_H
#define MK_SETUP_SPOOL_CHECK_H

#include "settings/config_generation_type.h"

/* Warns where MaxBodySize allows what one client may never spool. Call it when all routes are bound. */
void mk_spool_check_body_limits(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
