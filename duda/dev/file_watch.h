/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the folders of files for changes. */
#ifndef DUDA_DEV_FILE_WATCH_H
#define DUDA_DEV_FILE_WATCH_H

#include <monkey/str.h>
#include <stdbool.h>

/* Returns a descriptor that becomes readable when a file changes. On failure, reports the error and returns a
 * negative number. */
int dev_file_watch_open(void);
/* Adds the folder of each file, one per line. Adding a folder twice is allowed. */
void dev_file_watch_add_files(int fd, mk_str files);
void dev_file_watch_add_folder(int fd, const char *folder);
/* Consumes pending events. Returns false if there were none. */
bool dev_file_watch_drain(int fd);

#endif
