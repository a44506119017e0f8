/* SPDX-License-Identifier: Apache-2.0 */
/* How names in a folder end: where none ends in .gz, nobody need look for the .gz of each file in it. Kept
 * with the folder's entry in the cache of open files. */
#ifndef MK_WEB_ENDINGS_H
#define MK_WEB_ENDINGS_H

#include "web/openfile.h"

/* Which of the n (up to 32) endings a name in the folder of `file` may have: bit i stands for endings[i].
 * More than there are where it cannot be told: the folder has just changed, may not be read, or is large, or
 * the cache is full. The same endings each time. */
uint32_t mk_endings_beside(const struct mk_open_file *file, const mk_str *endings, unsigned n,
                           uint64_t now_ms, int64_t now);

#endif
