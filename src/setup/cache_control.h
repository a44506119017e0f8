/* SPDX-License-Identifier: Apache-2.0 */
/* [CACHE_CONTROL]: path patterns and the Cache-Control value of matching files. */
#ifndef MK_SETUP_CACHE_CONTROL_H
#define MK_SETUP_CACHE_CONTROL_H

#include "setup/config_generation_type.h"

/* Sets the cache rules of site->host. Errors go to the report. */
void mk_cache_control_build(struct mk_arena *arena, struct mk_vhost_config *site,
                            struct mk_conf_report *report);

#endif
