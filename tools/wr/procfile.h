/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc files of a process or thread. */
#ifndef WR_PROCFILE_H
#define WR_PROCFILE_H

#include <dirent.h>

#include "base/err.h"
#include "wr/proc_parse.h"

enum { WR_PROCFILE_MAX = 16 << 20 };

/* Replaces the content of `out` with the file; empty on error. Some files, such as cmdline, end with a
 * NUL. */
mk_err wr_procfile_read(struct mk_buf *out, const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;
/* Returns NULL if the directory does not exist. */
DIR *wr_procfile_folder(const char *fmt, ...) MK_PRINTF(1, 2);
/* Gets the next numeric entry; false at the end. */
bool wr_procfile_next_number(DIR *folder, pid_t *number);
/* Returns false if the process does not exist. */
bool wr_procfile_read_stat(pid_t pid, struct wr_stat *out) MK_MUST_USE;

#endif
