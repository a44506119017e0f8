/* SPDX-License-Identifier: Apache-2.0 */
#include "passwd_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <monkey/buf.h>
#include <monkey/text.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20, LOCK_TRIES = 500, LOCK_PAUSE_MS = 20 };

struct file {
    int folder, fd;      /* fd is -1 if the file does not exist */
    char path[PATH_MAX]; /* path of the folder */
    char name[NAME_MAX + 1];
    struct stat st;
};

static bool set_failed_step(const char **error, const char *what)
{
    *error = what;
    return false;
}

/* ---- Opening and locking ---- */

/* Resolves links, because replacing a link would leave the file itself unchanged. */
static bool open_folder_of(struct file *f, const char *path, const char **error)
{
    char link[PATH_MAX];
    const char *given = realpath(path, link) ? link : path;
    mk_str all = mk_str_from_c(given);
    size_t slash = mk_str_find_last(all, '/');
    mk_str name = slash == MK_STR_NONE ? all : mk_str_skip(all, slash + 1);
    mk_str folder = slash == MK_STR_NONE ? MK_STR(".") : slash == 0 ? MK_STR("/") : mk_str_first(all, slash);
    if (name.len == 0 || name.len > NAME_MAX || folder.len >= PATH_MAX) {
        errno = name.len ? ENAMETOOLONG : EISDIR;
        return set_failed_step(error, "use this path as a file");
    }
    memcpy(f->name, name.p, name.len); /* NUL-terminated: *f was zeroed */
    memcpy(f->path, folder.p, folder.len);
    f->folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return f->folder >= 0 || set_failed_step(error, "open its folder");
}

/* Locks the folder and not the file, because each change replaces the file. */
static bool lock_file(const struct file *f, const char **error)
{
    static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(f->folder, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK)
            break;
        nanosleep(&pause, NULL);
    }
    return set_failed_step(error, "lock the file (is another program changing it?)");
}

static bool open_existing_file(struct file *f, bool create, const char **error)
{
    f->fd = openat(f->folder, f->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (f->fd < 0)
        return (create && errno == ENOENT) || set_failed_step(error, "open the file");
    if (fstat(f->fd, &f->st) != 0)
        return set_failed_step(error, "read the attributes of the file");
    if (S_ISREG(f->st.st_mode) && f->st.st_size <= FILE_MAX)
        return true;
    errno = S_ISREG(f->st.st_mode) ? EFBIG : EINVAL;
    return set_failed_step(error, "use it as a password file");
}

static bool read_existing_file(const struct file *f, struct mk_buf *text, const char **error)
{
    ssize_t n = 0;
    while (f->fd >= 0 && mk_buf_reserve(text, 4096) && (n = read(f->fd, text->p + text->len, 4096)) > 0)
        text->len += (size_t)n;
    if (text->failed)
        errno = ENOMEM;
    return (!text->failed && n >= 0) || set_failed_step(error, "read the file");
}

/* ---- Entries ---- */

/* Returns whether the line is this entry. A realm may have one entry for each hash length. */
static bool line_is_entry(mk_str line, const struct auth_passwd_entry *entry)
{
    mk_str rest = mk_str_trim(line);
    if (rest.len && rest.p[rest.len - 1] == '\r')
        rest.len--;
    mk_str name = mk_str_cut(&rest, ':');
    if (!rest.p || !mk_str_eq(name, entry->name))
        return false;
    bool is_digest = mk_str_find(rest, ':') != MK_STR_NONE;
    if (!entry->realm.p)
        return !entry->hash.p || !is_digest;
    return is_digest && mk_str_eq(mk_str_cut(&rest, ':'), entry->realm) &&
           (!entry->hash.p || rest.len == entry->hash.len);
}

static void write_entry(struct mk_buf *out, const struct auth_passwd_entry *entry)
{
    mk_buf_add(out, entry->name);
    mk_buf_add_char(out, ':');
    if (entry->realm.p) {
        mk_buf_add(out, entry->realm);
        mk_buf_add_char(out, ':');
    }
    mk_buf_add(out, entry->hash);
    mk_buf_add_char(out, '\n');
}

/* Replaces or deletes an existing entry, or appends a new one. */
static enum auth_edit rewrite_lines(mk_str old, const struct auth_passwd_entry *entry, struct mk_buf *out)
{
    bool found = false;
    while (old.len) {
        mk_str line = mk_str_cut(&old, '\n');
        bool about = line_is_entry(line, entry);
        if (about && !found && entry->hash.p)
            write_entry(out, entry);
        found |= about;
        if (about)
            continue;
        mk_buf_add(out, line);
        mk_buf_add_char(out, '\n');
    }
    if (!entry->hash.p)
        return found ? AUTH_DELETED : AUTH_NOT_THERE;
    if (!found)
        write_entry(out, entry);
    return found ? AUTH_CHANGED : AUTH_ADDED;
}

/* ---- Writing ---- */

static bool write_all(int fd, mk_str text)
{
    while (text.len) {
        ssize_t n = write(fd, text.p, text.len);
        if (n < 0 && errno != EINTR)
            return false;
        text = mk_str_skip(text, n > 0 ? (size_t)n : 0);
    }
    return true;
}

/* Keeps owner and mode; a new file is accessible only to its owner. */
static bool copy_owner_and_mode(const struct file *f, int fd, const char **error)
{
    struct stat now;
    if (f->fd < 0)
        return true;
    if (fstat(fd, &now) != 0)
        return set_failed_step(error, "read the attributes of the temporary file");
    if ((now.st_uid != f->st.st_uid || now.st_gid != f->st.st_gid) &&
        fchown(fd, f->st.st_uid, f->st.st_gid) != 0)
        return set_failed_step(error, "copy the owner to the temporary file");
    return fchmod(fd, f->st.st_mode & 07777) == 0 ||
           set_failed_step(error, "copy the mode to the temporary file");
}

static bool write_replacement(const struct file *f, int fd, mk_str text, const char **error)
{
    return copy_owner_and_mode(f, fd, error) &&
           ((write_all(fd, text) && fsync(fd) == 0) || set_failed_step(error, "write the temporary file"));
}

static bool replace_file(const struct file *f, mk_str text, const char **error)
{
    char name[NAME_MAX + 1];
    uint64_t number;
    mk_random(&number, sizeof number);
    snprintf(name, sizeof name, ".passwd-%016llx", (unsigned long long)number);
    int fd = openat(f->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return set_failed_step(error, "create a temporary file in the same folder");
    bool good = write_replacement(f, fd, text, error);
    close(fd);
    if (good && renameat(f->folder, name, f->folder, f->name) != 0)
        good = set_failed_step(error, "replace the file");
    if (!good) {
        int e = errno;
        unlinkat(f->folder, name, 0);
        errno = e;
        return false;
    }
    return fsync(f->folder) == 0 || set_failed_step(error, "sync the folder to disk");
}

/* Replaces the file while signals are blocked, so that Ctrl-C cannot leave the temporary file behind. */
static bool replace_with_signals_blocked(const struct file *f, mk_str text, const char **error)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    bool good = replace_file(f, text, error);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}

static bool edit_locked_file(struct file *f, const struct auth_passwd_entry *entry, bool create,
                             enum auth_edit *done, const char **error)
{
    struct mk_buf old = mk_buf_growing(FILE_MAX + 8192), text = mk_buf_growing(FILE_MAX + 8192);
    bool good = open_existing_file(f, create, error) && read_existing_file(f, &old, error);
    if (good) {
        *done = rewrite_lines(mk_buf_str(&old), entry, &text);
        if (text.failed) {
            errno = ENOMEM;
            good = set_failed_step(error, "edit the file");
        }
    }
    if (good && *done != AUTH_NOT_THERE)
        good = replace_with_signals_blocked(f, mk_buf_str(&text), error);
    mk_buf_free(&old);
    mk_buf_free(&text);
    return good;
}

bool auth_passwd_file_edit(const char *path, bool create, const struct auth_passwd_entry *entry,
                           enum auth_edit *done, const char **error)
{
    struct file f = {.folder = -1, .fd = -1};
    bool good = open_folder_of(&f, path, error) && lock_file(&f, error) &&
                edit_locked_file(&f, entry, create, done, error);
    int e = errno;
    if (f.fd >= 0)
        close(f.fd);
    if (f.folder >= 0)
        close(f.folder); /* releases the lock */
    errno = e;
    return good;
}
