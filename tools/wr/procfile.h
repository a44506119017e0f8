/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what is below /proc of one process, or of one of its threads. */
#ifndef WR_PROCFILE_H
#define WR_PROCFILE_H

#include <dirent.h>

#include "base/err.h"
#include "wr/proc_parse.h"

enum { WR_PROCFILE_MAX = 16 << 20 };

/* The whole of the file in place of what `out` held; empty when there is an error. The text may end at a NUL,
 * as cmdline. */
mk_err wr_procfile_read(struct mk_buf *out, const char *fmt, ...) MK_PRINTF(2, 3) MK_MUST_USE;
/* NULL when there is no such folder. */
DIR *wr_procfile_folder(const char *fmt, ...) MK_PRINTF(1, 2);
/* The next entry that is a number; false at the end. */
bool wr_procfile_next(DIR *folder, pid_t *number);
/* False when there is no such process (any more). */
bool wr_procfile_stat(pid_t pid, struct wr_stat *out) MK_MUST_USE;

#endif
