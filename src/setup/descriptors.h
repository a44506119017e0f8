/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the limit of descriptors fits a configuration. */
#ifndef MK_SETUP_DESCRIPTORS_H
#define MK_SETUP_DESCRIPTORS_H

#include "settings/generation_type.h"

/* Warns if the master would run out of descriptors, or its workers would have too few for connections. Call it
 * when everything is open but the sockets of Listen. */
void mk_descriptors_check(const struct mk_generation *g, struct mk_conf_report *report);

#endif
