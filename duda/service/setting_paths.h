/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_SETTING_PATHS_H
#define DUDA_SERVICE_SETTING_PATHS_H

#include <duda/service.h>
#include <monkey/config.h>

/* Makes the paths in the section of a service absolute, and allows the workers to use them. Reports an error and
 * returns false if a folder for files of the service does not exist. */
bool duda_setting_paths_resolve(struct mk_config *config, const struct mk_conf_table *table, void *settings);

#endif
