/* SPDX-License-Identifier: Apache-2.0 */
/* Watches files whose change reloads the configuration. Checks each file by name, and thus also detects
 * renamed files, changed links, and changes on file systems without notification. */
#ifndef MK_SETUP_FILE_WATCH_H
#define MK_SETUP_FILE_WATCH_H

#include <sys/types.h>

#include "base/arena.h"

struct mk_file_watch {
    struct mk_file_watch *next;
    const char *path;
    /* State at the last check; all zero: missing. */
    dev_t device;
    ino_t inode;
    int64_t size, changed_s, changed_ns;
};

/* Adds the file with its current state, unless the list contains it. `path` must outlive the arena. False:
 * out of memory. */
bool mk_file_watch_add(struct mk_file_watch **list, struct mk_arena *arena, const char *path) MK_MUST_USE;
/* Has any file of the list changed since the last check? */
bool mk_file_watch_poll(struct mk_file_watch *list);

#endif
