/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which suffixes occur in a folder: if no name ends in .gz, the .gz of each file need not be looked
 * up. Stored with the folder's entry in the file cache. */
#ifndef MK_FILES_SIBLING_SUFFIXES_H
#define MK_FILES_SIBLING_SUFFIXES_H

#include "files/file_cache.h"

/* Returns which of the n (up to 32) suffixes occur in the folder of `file`: bit i is for suffixes[i]. Sets
 * all bits if this is unknown, for example because the folder has just changed, is unreadable or too large,
 * or because the cache is full. Pass the same suffixes each time. */
uint32_t mk_sibling_suffixes_find(const struct mk_open_file *file, const mk_str *suffixes, unsigned n,
                                  uint64_t now_ms, int64_t now);

#endif
