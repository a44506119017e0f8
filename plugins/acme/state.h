/* SPDX-License-Identifier: Apache-2.0 */
/* The folder for account, certificates and pending orders. */
#ifndef ACME_STATE_H
#define ACME_STATE_H

#include "settings.h"

/* Creates it, with the folders below it that workers read, for the user of the workers. Reports failures. */
int acme_state_make(struct mk_config *config, const struct acme_settings *s);

#endif
