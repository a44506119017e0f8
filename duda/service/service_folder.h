/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DUDA_SERVICE_SERVICE_FOLDER_H
#define DUDA_SERVICE_SERVICE_FOLDER_H

#include <dirent.h>
#include <duda/service.h>

/* Opens the folder with that name next to the object file of the service or, if that does not exist, next to
 * its source. Returns the descriptor, or -1. */
int duda_service_folder_open(const struct duda_service *service, const char *name);

/* Returns whether the entry is a folder, not a link to one. Examines the file if its file system does not
 * report the types of entries. */
bool duda_service_folder_is_folder(int folder, const struct dirent *entry);

/* Appends the content of a regular file of at most `max` bytes. Returns 0 or a negative errno value; -EFBIG:
 * the file is larger, or not a regular file. */
int duda_service_folder_read(int folder, const char *name, size_t max, struct mk_buf *out);

#endif
