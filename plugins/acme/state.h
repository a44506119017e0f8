/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that holds account, certificates and what is under way. */
#ifndef ACME_STATE_H
#define ACME_STATE_H

#include "settings.h"

/* Makes it, with the folders below it that workers read, for the user of the workers. What is wrong is
 * reported. */
int acme_state_make(struct mk_config *config, const struct acme_settings *s);

#endif
