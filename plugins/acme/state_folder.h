/* SPDX-License-Identifier: Apache-2.0 */
/* The folder for account, certificates and pending orders. */
#ifndef ACME_STATE_FOLDER_H
#define ACME_STATE_FOLDER_H

#include "settings.h"

/* Reports a folder that exists, but that the workers' user cannot use, or that acme_state_folder_create() would hand over although
 * others use it, too. */
void acme_state_folder_check(struct mk_config *config, const struct acme_settings *s);
/* Creates it, with the folders below it that workers read, for the user of the workers. A folder that belongs to the
 * master's user, and where no other user can write, is handed over to them with all that is in it. Reports failures, and
 * then leaves nothing that it has created. */
int acme_state_folder_create(struct mk_config *config, const struct acme_settings *s);

#endif
