/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/file_watch.h"

#include <string.h>
#include <sys/stat.h>

/* Updates the recorded state of a file. True: the file has changed since the last check. */
static bool update_if_changed(struct mk_file_watch *w)
{
    struct stat st;
    struct mk_file_watch now = {.next = w->next, .path = w->path};
    if (stat(w->path, &st) == 0) {
        now.device = st.st_dev;
        now.inode = st.st_ino;
        now.size = st.st_size;
        now.changed_s = st.st_ctim.tv_sec; /* updated when the data, the name or the permissions change */
        now.changed_ns = st.st_ctim.tv_nsec;
    }
    bool same = now.device == w->device && now.inode == w->inode && now.size == w->size &&
                now.changed_s == w->changed_s && now.changed_ns == w->changed_ns;
    *w = now;
    return !same;
}

bool mk_file_watch_add(struct mk_file_watch **list, struct mk_arena *arena, const char *path)
{
    for (const struct mk_file_watch *w = *list; w; w = w->next)
        if (strcmp(w->path, path) == 0)
            return true;
    struct mk_file_watch *w = mk_arena_zalloc(arena, 1, sizeof *w);
    if (!w)
        return false;
    *w = (struct mk_file_watch){.next = *list, .path = path};
    *list = w;
    (void)update_if_changed(w);
    return true;
}

bool mk_file_watch_poll(struct mk_file_watch *list)
{
    bool changed = false;
    for (struct mk_file_watch *w = list; w; w = w->next)
        changed |= update_if_changed(w);
    return changed;
}
