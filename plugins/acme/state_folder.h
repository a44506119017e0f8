/* SPDX-License-Identifier: Apache-2.0 */
/* The folder for the account, certificates and pending orders. */
#ifndef ACME_STATE_FOLDER_H
#define ACME_STATE_FOLDER_H

#include "settings.h"

/* Reports an existing folder that the workers' user cannot use, or whose owner acme_state_folder_create()
 * would change although other programs use it. */
void acme_state_folder_check(struct mk_config *config, const struct acme_settings *s);
/* Creates the folder, with the subfolders that workers read, for the workers' user. If an existing folder
 * belongs to the master's user and no other user can write to it, the workers' user becomes the owner of the
 * folder and of the master's files in it. On failure, reports it and removes the folders created so far. */
int acme_state_folder_create(struct mk_config *config, const struct acme_settings *s, bool on_demand);

#endif
