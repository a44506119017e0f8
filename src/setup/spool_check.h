/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that request bodies fit into the spool. */
#ifndef MK_SETUP_SPOOL_CHECK_H
#define MK_SETUP_SPOOL_CHECK_H

#include "setup/config_generation_type.h"

/* Warns if MaxBodySize allows larger bodies than one client may ever spool. Call it after all routes are
 * bound. */
void mk_spool_check_body_limits(const struct mk_config_generation *g, struct mk_conf_report *report);

#endif
