/* SPDX-License-Identifier: Apache-2.0 */
/* Which suffixes the names in a folder have: where no name ends in .gz, the .gz of each file need not be
 * looked for. Kept with the folder's entry in the cache of open files. */
#ifndef MK_FILES_SIBLING_SUFFIXES_H
#define MK_FILES_SIBLING_SUFFIXES_H

#include "files/file_cache.h"

/* Which of the n (up to 32) suffixes a name in the folder of `file` may have: bit i is for suffixes[i].
 * Too many rather than too few where the answer is not known: the folder has just changed, is unreadable or
 * large, or the cache is full. Pass the same suffixes each time. */
uint32_t mk_sibling_suffixes_find(const struct mk_open_file *file, const mk_str *suffixes, unsigned n,
                                  uint64_t now_ms, int64_t now);

#endif
