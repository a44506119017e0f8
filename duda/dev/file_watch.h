/* SPDX-License-Identifier: Apache-2.0 */
/* Tells that something may have changed in the folders of some files. */
#ifndef DUDA_DEV_FILE_WATCH_H
#define DUDA_DEV_FILE_WATCH_H

#include <monkey/str.h>
#include <stdbool.h>

/* A descriptor that becomes readable on changes; negative: reported. */
int dev_file_watch_open(void);
/* The folder of each file, a line each; what is watched already is fine. */
void dev_file_watch_add_files(int fd, mk_str files);
void dev_file_watch_add_folder(int fd, const char *folder);
/* Takes what has happened until now. False: nothing. */
bool dev_file_watch_drain(int fd);

#endif
