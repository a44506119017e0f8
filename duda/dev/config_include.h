/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the configuration file that the option -i names, and its includes. The server parses these files;
 * this code only looks for settings that affect how the server is started, and for files to watch. */
#ifndef DUDA_DEV_CONFIG_INCLUDE_H
#define DUDA_DEV_CONFIG_INCLUDE_H

#include <monkey/buf.h>
#include <stdbool.h>

/* Returns whether the configuration contains the section and, unless `key` is NULL, the key in it. */
bool dev_config_include_has(const char *path, const char *section, const char *key);
/* Adds to the list, one per line, the paths of the file, its includes and the migrations that these name. */
void dev_config_include_list_files(const char *path, struct mk_buf *files);

#endif
