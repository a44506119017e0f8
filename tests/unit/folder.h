/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder below /tmp for one test, with files and links; removed when the test ends. Independent
 * of cmocka: fuzz targets also use it. */
#ifndef MK_UNIT_FOLDER_H
#define MK_UNIT_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/fd.h"
#include "os/file.h"
#include "unit/harness.h"

struct folder {
    char path[64];
    int fd; /* result of mk_file_open_root() */
};

static inline void folder_init(struct folder *f)
{
    snprintf(f->path, sizeof f->path, "/tmp/monkey-XXXXXX");
    MK_ASSERT(mkdtemp(f->path) != NULL && chmod(f->path, 0755) == 0);
    MK_ASSERT(mk_file_open_root(f->path, &f->fd) == 0);
}

static inline int folder_remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
    (void)st;
    (void)what;
    (void)at;
    return remove(path);
}

static inline void folder_fini(struct folder *f)
{
    mk_fd_close(&f->fd);
    MK_ASSERT(nftw(f->path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

HARNESS_FIXTURE(folder, struct folder);

static inline void folder_add_folder(const struct folder *f, const char *name)
{
    MK_ASSERT(mkdirat(f->fd, name, 0755) == 0 || errno == EEXIST);
}

/* Creates a file with this content, or replaces an existing file; its parent folders must exist. */
static inline void folder_add(const struct folder *f, const char *name, mk_str text)
{
    unlinkat(f->fd, name, 0);
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    MK_ASSERT(fd >= 0 && mk_fd_write_all(fd, text.p, text.len) == 0);
    mk_fd_close(&fd);
}

static inline void folder_add_link(const struct folder *f, const char *name, const char *target)
{
    MK_ASSERT(symlinkat(target, f->fd, name) == 0);
}

/* Sets the modification time of the file, in seconds since 1970. */
static inline void folder_set_time(const struct folder *f, const char *name, int64_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};
    MK_ASSERT(utimensat(f->fd, name, times, 0) == 0);
}

/* Writes the absolute path of the file into `buffer`, which has PATH_MAX bytes. */
static inline const char *folder_path(const struct folder *f, const char *name, char buffer[PATH_MAX])
{
    snprintf(buffer, PATH_MAX, "%s/%s", f->path, name);
    return buffer;
}

#endif
