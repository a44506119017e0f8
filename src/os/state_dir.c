/* SPDX-License-Identifier: Apache-2.0 */
#include "os/state_dir.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/fd.h"

enum { LOCK_TRY_MS = 10, OTHERS = S_IRWXG | S_IRWXO, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* ---- Location ---- */

static mk_err join_path(char buf[PATH_MAX], mk_str folder, const char *below)
{
    int len = snprintf(buf, PATH_MAX, "%.*s%s", MK_STR_ARG(folder), below);
    if (folder.p[0] != '/')
        return -EINVAL;
    return len > 0 && len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* An empty variable counts as unset, as in the XDG specification. */
static mk_str getenv_nonempty(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? mk_str_from_c(value) : MK_STR_NULL;
}

static mk_err home_state_path(char buf[PATH_MAX])
{
    mk_str home = getenv_nonempty("HOME");
    if (!home.p) {
        const struct passwd *user = getpwuid(geteuid());
        home = mk_str_from_c(user ? user->pw_dir : NULL);
    }
    return home.len ? join_path(buf, home, "/.local/state/monkey") : -ENOENT;
}

mk_err mk_state_dir_path(char buf[PATH_MAX])
{
    mk_str named = getenv_nonempty("MONKEY_STATE");
    if (named.p)
        return join_path(buf, named, "");
    named = getenv_nonempty("STATE_DIRECTORY");
    if (named.p)
        return join_path(buf, mk_str_cut(&named, ':'), "");
    if (geteuid() == 0)
        return join_path(buf, MK_STR("/var/lib/monkey"), "");
    named = getenv_nonempty("XDG_STATE_HOME");
    if (named.p && named.p[0] == '/') /* XDG: relative paths must be ignored */
        return join_path(buf, named, "/monkey");
    return home_state_path(buf);
}

/* ---- The folder ---- */

/* The workers of a master that runs as root may use a folder below the state folder: they may enter it, but not list
 * it. */
static mk_err make_folder(const char *path, const char *state)
{
    if (mkdir(path, S_IRWXU) < 0)
        return mk_err_last();
    bool is_state = geteuid() == 0 && strcmp(path, state) == 0;
    return is_state && chmod(path, S_IRWXU | S_IXGRP | S_IXOTH) < 0 ? mk_err_last() : 0;
}

/* Creates all folders of the path that do not exist. */
static mk_err make_folders(const char *path)
{
    char buf[PATH_MAX], state[PATH_MAX];
    if (mk_state_dir_path(state))
        state[0] = '\0';
    size_t len = strlen(path);
    if (len >= sizeof buf)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(buf, path, i);
        buf[i] = '\0';
        mk_err e = make_folder(buf, state);
        if (e && e != -EEXIST && e != -EISDIR && access(buf, F_OK) != 0)
            return e;
    }
    return 0;
}

static mk_err deny_with_reason(const char **error, const char *text)
{
    *error = text;
    return -EPERM;
}

static mk_err check_folder_owner(int dir, const char **error)
{
    struct stat st;
    if (fstat(dir, &st) < 0)
        return mk_err_last();
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return deny_with_reason(error, "the folder belongs to another user");
    if (st.st_mode & OTHERS_WRITE)
        return deny_with_reason(error, "other users can write to the folder (fix: chmod 700)");
    return 0;
}

mk_err mk_state_dir_open(const char *path, int *dir, const char **error)
{
    mk_err e = make_folders(path);
    *dir = -1;
    *error = mk_err_text(e);
    if (e)
        return e;
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    e = *dir < 0 ? mk_err_last() : 0;
    *error = e == -ELOOP || e == -ENOTDIR ? "it is not a folder (and must not be a symbolic link)"
                                          : mk_err_text(e);
    if (!e)
        e = check_folder_owner(*dir, error);
    if (e)
        mk_fd_close(dir);
    return e;
}

mk_err mk_state_dir_lock(int dir, unsigned wait_ms)
{
    const struct timespec while_they_work = {.tv_nsec = LOCK_TRY_MS * 1000000L};
    for (unsigned waited = 0; flock(dir, LOCK_EX | LOCK_NB) < 0; waited += LOCK_TRY_MS) {
        if (errno == EBADF || errno == EOPNOTSUPP || errno == ENOLCK)
            return 0; /* NFS may have no locks; files are still replaced atomically there */
        if (errno != EWOULDBLOCK && errno != EINTR)
            return mk_err_last();
        if (waited >= wait_ms)
            return -EBUSY;
        nanosleep(&while_they_work, NULL);
    }
    return 0;
}

/* ---- Files ---- */

static mk_err check_file_owner(const struct stat *st, bool secret, const char **error)
{
    if (!S_ISREG(st->st_mode))
        return deny_with_reason(error, "it is not a regular file");
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return deny_with_reason(error, "it belongs to another user");
    if (secret && st->st_mode & OTHERS)
        return deny_with_reason(error, "other users may read it, and may have done so (fix: chmod 600)");
    return st->st_mode & OTHERS_WRITE ? deny_with_reason(error, "other users may write to it") : 0;
}

static mk_err read_file_text(int fd, size_t size, struct mk_buf *out)
{
    if (!mk_buf_reserve(out, size + 1))
        return -EFBIG;
    for (;;) {
        ssize_t n = read(fd, out->p + out->len, size + 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? mk_err_last() : 0;
        out->len += (size_t)n;
        if ((size_t)n > size)
            return -EFBIG; /* the file grows while we read */
        size -= (size_t)n;
    }
}

mk_err mk_state_dir_read(int dir, const char *name, bool secret, struct mk_buf *out, const char **error)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    mk_err e = fd < 0 ? mk_err_last() : fstat(fd, &st) < 0 ? mk_err_last() : 0;
    *error = e == -ELOOP ? "it is a symbolic link" : mk_err_text(e);
    if (e == -ELOOP)
        e = -EPERM;
    if (!e)
        e = check_file_owner(&st, secret, error);
    if (!e) {
        e = read_file_text(fd, (size_t)st.st_size, out);
        *error = mk_err_text(e);
    }
    mk_fd_close(&fd);
    return e;
}

static mk_err write_and_sync(int fd, mode_t mode, mk_str text)
{
    mk_err e = fchmod(fd, mode) < 0 ? mk_err_last() : mk_fd_write_all(fd, text.p, text.len);
    return e ? e : fsync(fd) < 0 ? mk_err_last() : 0;
}

mk_err mk_state_dir_write(int dir, const char *name, mode_t mode, mk_str text)
{
    char next[NAME_MAX + 1];
    int len = snprintf(next, sizeof next, ".%s.new", name);
    if (len < 0 || (size_t)len >= sizeof next)
        return -ENAMETOOLONG;
    unlinkat(dir, next, 0); /* may be left from a process that was killed while writing */
    int fd = openat(dir, next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return mk_err_last();
    mk_err e = write_and_sync(fd, mode, text);
    mk_fd_close(&fd);
    if (!e && renameat(dir, next, dir, name) < 0)
        e = mk_err_last();
    if (e)
        unlinkat(dir, next, 0);
    else if (fsync(dir) < 0 && errno != EINVAL)
        e = mk_err_last();
    return e;
}
