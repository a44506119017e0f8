/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the configuration file of -i and its includes. The server parses them; this code only looks for
 * settings that affect how the server is started, and for files to watch. */
#ifndef DUDA_DEV_CONFIG_INCLUDE_H
#define DUDA_DEV_CONFIG_INCLUDE_H

#include <monkey/buf.h>
#include <stdbool.h>

/* Does the configuration contain the section, and the key unless `key` is NULL? */
bool dev_config_include_has(const char *path, const char *section, const char *key);
/* Adds the file and its includes to the list, one per line. */
void dev_config_include_list_files(const char *path, struct mk_buf *files);

#endif
