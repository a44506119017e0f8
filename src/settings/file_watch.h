/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose change reloads the configuration. They are polled by name: this notices renamed files, changed
 * links, and changes on file systems without notification. */
#ifndef MK_SETTINGS_FILE_WATCH_H
#define MK_SETTINGS_FILE_WATCH_H

#include <sys/types.h>

#include "base/arena.h"

struct mk_file_watch {
    struct mk_file_watch *next;
    const char *path;
    /* Its state at the last check; all zero: it did not exist. */
    dev_t device;
    ino_t inode;
    int64_t size, changed_s, changed_ns;
};

/* Adds the file, as it is now, unless it is in the list already. `path` outlives the arena. False: no memory.
 */
bool mk_file_watch_add(struct mk_file_watch **list, struct mk_arena *arena, const char *path) MK_MUST_USE;
/* True if any of them has changed since the last check. */
bool mk_file_watch_poll(struct mk_file_watch *list);

#endif
