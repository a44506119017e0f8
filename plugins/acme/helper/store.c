/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, ANSWER_S = 3600 };

static bool format_file_path(char path[PATH_MAX], const char *folder, const char *prefix, const char *name,
                             const char *suffix)
{
    int n = snprintf(path, PATH_MAX, "%s%s%s%s%s", folder, *folder ? "/" : "", prefix, name, suffix);
    return n > 0 && n < PATH_MAX;
}

/* ---- Start ---- */

/* Keeps recent files: an interrupted run may still need them to continue. */
static void remove_old_files(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (acme_store_mtime(folder, e->d_name, "") < time(NULL) - ANSWER_S)
            acme_store_remove(folder, e->d_name, "");
    if (d)
        closedir(d);
}

static int lock_state_folder(struct acme_error *f)
{
    int fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); /* held until the process ends */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    int e = errno;
    if (e == EWOULDBLOCK)
        return -EAGAIN;
    acme_error_set_global(f, "cannot write to the state folder: %s", strerror(e));
    return -e;
}

int acme_store_open(struct acme_error *f)
{
    static const char *const folders[] = {ACME_CERTIFICATES, ACME_ORDERS, ACME_FAILURES, ACME_HTTP,
                                          ACME_ALPN};
    umask(077);
    int e = lock_state_folder(f);
    if (e)
        return e;
    for (size_t i = 0; i < MK_LEN(folders); i++)
        if (mkdir(folders[i], 0700) < 0 && errno != EEXIST) {
            e = errno;
            acme_error_set_global(f, "cannot create the folder %s in the state folder: %s", folders[i],
                                  strerror(e));
            return -e;
        }
    remove_old_files(ACME_HTTP);
    remove_old_files(ACME_ALPN);
    return 0;
}

/* ---- Writing ---- */

static bool write_all(int fd, mk_str text)
{
    while (text.len) {
        ssize_t n = write(fd, text.p, text.len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            text = mk_str_skip(text, (size_t)n);
    }
    return fsync(fd) == 0;
}

static bool write_new_file(const char *path, mk_str text)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, text);
    int e = errno;
    close(fd);
    if (!ok)
        (void)unlink(path);
    errno = e;
    return ok;
}

/* Makes the new name survive a crash of the machine. */
static void fsync_folder(const char *folder)
{
    int fd = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

bool acme_store_write(const char *folder, const char *name, const char *suffix, mk_str text,
                      struct acme_error *f)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    if (!format_file_path(path, folder, "", name, suffix) ||
        !format_file_path(temporary, folder, ".new-", name, suffix))
        return acme_error_set(f, "file name `%s` is too long", name);
    if (!write_new_file(temporary, text) || rename(temporary, path) < 0)
        return acme_error_set(f, "cannot write the file %s in the state folder: %s", path, strerror(errno));
    fsync_folder(folder);
    return true;
}

void acme_store_remove(const char *folder, const char *name, const char *suffix)
{
    char path[PATH_MAX];
    if (format_file_path(path, folder, "", name, suffix))
        (void)unlink(path);
}

/* ---- Reading ---- */

static int read_all(int fd, struct mk_buf *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return -EINVAL;
    for (;;) {
        if (!mk_buf_reserve(out, 4096))
            return -ENOMEM;
        ssize_t n = read(fd, out->p + out->len, 4096);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        if (n > 0)
            out->len += (size_t)n;
    }
}

int acme_store_read(const char *folder, const char *name, const char *suffix, struct mk_buf *out)
{
    char path[PATH_MAX];
    *out = mk_buf_growing(FILE_MAX + 8192);
    if (!format_file_path(path, folder, "", name, suffix))
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int e = read_all(fd, out);
    close(fd);
    if (e)
        mk_buf_free(out);
    return e;
}

int64_t acme_store_mtime(const char *folder, const char *name, const char *suffix)
{
    char path[PATH_MAX];
    struct stat st;
    if (!format_file_path(path, folder, "", name, suffix) || lstat(path, &st) < 0)
        return 0;
    return st.st_mtime;
}
