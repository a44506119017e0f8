/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/text.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, ANSWER_S = 3600 };

/* The path of the state folder with the account and the challenge responses. */
static const char *shared_folder = "";

static bool is_shared(const char *folder)
{
    return !*folder || strcmp(folder, ACME_HTTP) == 0 || strcmp(folder, ACME_ALPN) == 0;
}

static bool format_file_path(char path[PATH_MAX], const char *folder, const char *prefix, const char *name,
                             const char *suffix)
{
    int n = snprintf(path, PATH_MAX, "%s%s%s%s%s%s", is_shared(folder) ? shared_folder : "", folder,
                     *folder ? "/" : "", prefix, name, suffix);
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

/* Creates the first `n` folders that are missing. */
static int create_folders(size_t n, struct acme_error *f)
{
    static const char *const folders[] = {ACME_CERTIFICATES, ACME_ORDERS, ACME_FAILURES, ACME_RENEWAL,
                                          ACME_HTTP,         ACME_ALPN,   ACME_DNS};
    for (size_t i = 0; i < n; i++)
        if (mkdir(folders[i], 0700) < 0 && errno != EEXIST) {
            int e = errno;
            acme_error_set_global(f, "cannot create the folder %s in the state folder: %s", folders[i],
                                  strerror(e));
            return -e;
        }
    return 0;
}

int acme_store_open(struct acme_error *f)
{
    umask(077);
    int e = lock_state_folder(f);
    if (!e)
        e = create_folders(7, f);
    if (e)
        return e;
    remove_old_files(ACME_HTTP);
    remove_old_files(ACME_ALPN);
    return 0;
}

int acme_store_open_on_demand(bool takes_lock, struct acme_error *f)
{
    umask(077);
    shared_folder = "../";
    int e = takes_lock ? lock_state_folder(f) : 0;
    return e ? e : create_folders(4, f);
}

/* Locks one byte of a file, whose offset depends on the name: the file stays empty, and the lock of a process that dies
 * is released. Two names with the same offset only wait for each other. */
bool acme_store_lock_name(const char *name, struct acme_error *f)
{
    uint64_t hash = mk_fnv1a(MK_FNV1A_INIT, mk_str_from_c(name));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)(hash >> 1), .l_len = 1};
    int fd = open("locks", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), e = -1;
    while (fd >= 0 && (e = fcntl(fd, F_OFD_SETLKW, &lock)) < 0 && errno == EINTR)
        continue;
    return e == 0 || acme_error_set_global(f, "cannot lock the state of %s: %s", name, strerror(errno));
}

int acme_store_lock_account(void)
{
    char path[PATH_MAX];
    if (!format_file_path(path, "", "", "account.lock", ""))
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), e = -1;
    while (fd >= 0 && (e = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
        continue;
    return fd;
}

void acme_store_each(const char *folder, const char *suffix, bool (*fn)(void *ctx, const char *name),
                     void *ctx)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    bool more = d;
    while (more && (e = readdir(d))) {
        mk_str file = mk_str_from_c(e->d_name);
        char name[sizeof e->d_name];
        if (e->d_name[0] == '.' || !mk_str_ends(file, mk_str_from_c(suffix)))
            continue;
        size_t len = file.len - strlen(suffix);
        memcpy(name, file.p, len);
        name[len] = '\0';
        more = fn(ctx, name);
    }
    if (d)
        closedir(d);
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
    char path[PATH_MAX];
    if (!format_file_path(path, folder, "", "", ""))
        return;
    int fd = open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
