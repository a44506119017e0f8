/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the [UPSTREAM] section that has a name. */
#ifndef MK_UPSTREAM_FIND_H
#define MK_UPSTREAM_FIND_H

#include "upstream/names.h"

/* NULL: there is none. */
const struct mk_upstream_settings *mk_find_section(struct mk_config *config, mk_str name);

#endif
