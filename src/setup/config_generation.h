/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a configuration as one generation. */
#ifndef MK_SETUP_CONFIG_GENERATION_H
#define MK_SETUP_CONFIG_GENERATION_H

#include "setup/config_generation_type.h"

/* Parses, validates and builds everything; opens document roots and logs. NULL on any error (see the report);
 * success may come with warnings. The problems in `report` are allocated in `report_arena`. */
struct mk_config_generation *mk_config_generation_load(const struct mk_config_source *origin,
                                                       struct mk_arena *report_arena,
                                                       struct mk_conf_report *report) MK_MUST_USE;
void mk_config_generation_free(struct mk_config_generation *g);

/* Does any Listen use TLS? */
bool mk_config_generation_has_tls(const struct mk_config_generation *g);

#endif
