/* SPDX-License-Identifier: Apache-2.0 */
#include "os/safe_open.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

enum { LINKS_MAX = 8 };

static bool has_group(const struct mk_identity *id, gid_t gid)
{
    for (int i = 0; i < id->n_groups; i++)
        if (id->groups[i] == gid)
            return true;
    return id->n_groups < 0 || id->gid == gid;
}

/* May the user write to the file? The owner always may, because the owner can change the mode. */
static bool may_write(const struct mk_identity *id, const struct stat *st)
{
    return st->st_uid == id->uid || (st->st_mode & S_IWOTH) ||
           ((st->st_mode & S_IWGRP) && has_group(id, st->st_gid));
}

/* May the user replace a file in the folder? In a sticky folder, only the owners of the file and of the
 * folder may. */
static bool may_replace(const struct mk_identity *id, const struct stat *folder, const struct stat *part)
{
    bool owns = folder->st_uid == id->uid || part->st_uid == id->uid;
    return may_write(id, folder) && (owns || !(folder->st_mode & S_ISVTX));
}

/* The remaining path, and the folder in which it starts. */
struct walk {
    int dir;
    unsigned links;
    char rest[PATH_MAX];
};

static mk_err open_root_folder(struct walk *w)
{
    mk_fd_close(&w->dir);
    w->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return w->dir < 0 ? mk_err_last() : 0;
}

/* Replaces a link's name with its target. */
static mk_err follow_link(struct walk *w, int link)
{
    char target[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target);
    if (n <= 0 || ++w->links > LINKS_MAX)
        return n < 0 ? mk_err_last() : -ELOOP;
    int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, target, w->rest);
    if (len < 0 || (size_t)len >= sizeof w->rest)
        return -ENAMETOOLONG;
    memcpy(w->rest, path, (size_t)len + 1);
    return *target == '/' ? open_root_folder(w) : 0;
}

/* Enters the subfolder `name`, or follows a link that root owns. -ELOOP, -EPERM: see mk_safe_open(). */
static mk_err enter_component(struct walk *w, const char *name, const struct mk_identity *other)
{
    struct stat folder, part;
    int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return mk_err_last();
    mk_err e = fstat(w->dir, &folder) < 0 || fstat(next, &part) < 0 ? mk_err_last() : 0;
    if (!e && may_replace(other, &folder, &part))
        e = S_ISLNK(part.st_mode) ? -ELOOP : -EPERM;
    if (!e && S_ISLNK(part.st_mode)) {
        e = part.st_uid == 0 ? follow_link(w, next) : -ELOOP;
        mk_fd_close(&next);
        return e;
    }
    mk_fd_close(&w->dir);
    w->dir = next;
    return e;
}

/* Opens the file in its folder. The file might not exist yet, so `other` must not be able to create it
 * first. */
static int open_final(int dir, const char *name, int flags, unsigned mode, const struct mk_identity *other)
{
    struct stat folder;
    if (fstat(dir, &folder) < 0)
        return mk_err_last();
    if (may_write(other, &folder))
        return -EPERM;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    return fd < 0 ? mk_err_last() : fd;
}

int mk_safe_open(const char *path, int flags, unsigned mode, const struct mk_identity *other)
{
    struct walk w = {.dir = -1};
    size_t len = strlen(path);
    if (len >= sizeof w.rest)
        return -ENAMETOOLONG;
    memcpy(w.rest, path, len + 1);
    mk_err e = open_root_folder(&w);
    for (char *slash; !e && (slash = strchr(w.rest, '/'));) {
        char name[PATH_MAX];
        size_t n = (size_t)(slash - w.rest);
        memcpy(name, w.rest, n);
        name[n] = '\0';
        memmove(w.rest, slash + 1, strlen(slash + 1) + 1);
        if (n)
            e = enter_component(&w, name, other);
    }
    int fd = e ? e : open_final(w.dir, w.rest, flags, mode, other);
    mk_fd_close(&w.dir);
    return fd;
}
