/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of [PLUGINS]: opens the plugins that they name, and those that these need. */
#ifndef MK_SETUP_LOADS_H
#define MK_SETUP_LOADS_H

#include "settings/generation_type.h"

/* Errors go to the report. */
void mk_loads_open(struct mk_generation *g, struct mk_conf_report *report);

#endif
