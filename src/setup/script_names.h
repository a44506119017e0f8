/* SPDX-License-Identifier: Apache-2.0 */
/* Determines from the routes and the Fallback of a host which file names are scripts. */
#ifndef MK_SETUP_SCRIPT_NAMES_H
#define MK_SETUP_SCRIPT_NAMES_H

#include "web/vhost.h"

/* Sets host->scripts. False: out of memory. */
bool mk_script_names_collect(struct mk_arena *arena, struct mk_vhost *host) MK_MUST_USE;

#endif
