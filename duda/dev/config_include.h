/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration file that -i names has, with the files that it includes. The server reads it; this
 * only looks for what decides how the server is started, and for files to watch. */
#ifndef DUDA_DEV_CONFIG_INCLUDE_H
#define DUDA_DEV_CONFIG_INCLUDE_H

#include <monkey/buf.h>
#include <stdbool.h>

/* Has it the section, and in it the key, unless that is NULL? */
bool dev_config_include_has(const char *path, const char *section, const char *key);
/* Adds the file and those that it includes to the list, a line each. */
void dev_config_include_list_files(const char *path, struct mk_buf *files);

#endif
