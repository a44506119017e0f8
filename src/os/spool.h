/* SPDX-License-Identifier: Apache-2.0 */
/* Spools data of unknown length: in memory while small, then in an unlinked file. */
#ifndef MK_OS_SPOOL_H
#define MK_OS_SPOOL_H

#include <monkey/spool.h>

#include "base/buf.h"
#include "base/err.h"

struct mk_spool {
    struct mk_buf kept; /* bytes in memory, which follow those in the file */
    uint64_t stored;    /* bytes in the file */
    int fd;             /* -1: not created yet */
};

/* Initializes the spool. `max`: maximum number of bytes kept in memory. */
void mk_spool_init(struct mk_spool *s, size_t max);
void mk_spool_fini(struct mk_spool *s);

/* Creates an unlinked file in that folder. Returns a descriptor or a negated errno value. */
int mk_spool_open_tmpfile(const char *folder) MK_MUST_USE;
/* Moves the bytes in memory to the file, creating it in `folder` if needed. May block; callable in any
 * thread. -ENOSPC: a limit of the file system or of the process was reached. */
mk_err mk_spool_write_to_file(struct mk_spool *s, const char *folder) MK_MUST_USE;

#endif
