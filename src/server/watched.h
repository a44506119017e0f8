/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose change means that the configuration is to be loaded anew. They are looked at by their names,
 * from time to time: that sees what is renamed over them, links that lead elsewhere now, and file systems
 * that tell nobody of changes. */
#ifndef MK_SERVER_WATCHED_H
#define MK_SERVER_WATCHED_H

#include <sys/types.h>

#include "base/arena.h"

struct mk_watched {
    struct mk_watched *next;
    const char *path;
    /* As it was when it was looked at last; all zero: it was not there. */
    dev_t device;
    ino_t inode;
    int64_t size, changed_s, changed_ns;
};

/* Adds the file, as it is now, unless it is in the list already. `path` outlives the arena. False: no memory.
 */
bool mk_watched_add(struct mk_watched **list, struct mk_arena *arena, const char *path) MK_MUST_USE;
/* Has any of them changed since it was looked at last? */
bool mk_watched_look(struct mk_watched *list);

#endif
