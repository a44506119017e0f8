/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/logfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/daemon.h"
#include "os/fd.h"
#include "os/safe_open.h"
#include "os/sd_notify.h"

static int syslog_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? mk_err_last() : fd;
}

static int connect_syslog(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int fd = syslog_socket();
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    mk_err e = mk_err_last();
    mk_fd_close(&fd);
    return e;
}

static enum mk_logfile_kind logfile_kind(mk_str where)
{
    if (where.len == 0 || mk_str_eq_nocase(where, MK_STR("off")))
        return MK_LOGFILE_OFF;
    if (mk_str_eq(where, MK_STR("stdout")) || mk_str_eq(where, MK_STR("stderr")))
        return MK_LOGFILE_STREAM;
    return mk_str_eq(where, MK_STR("syslog")) ? MK_LOGFILE_SYSLOG : MK_LOGFILE_FILE;
}

bool mk_logfile_is_special_name(mk_str where)
{
    return logfile_kind(where) != MK_LOGFILE_FILE;
}

/* Non-blocking: a named pipe must block neither startup, when it has no reader, nor the server, when it is
 * full. */
static int open_log_file(const struct mk_logfile *f, int only)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | only;
    if (f->workers)
        return mk_safe_open(f->where.p, flags, 0640, f->workers);
    int fd = open(f->where.p, flags, 0640);
    return fd < 0 ? mk_err_last() : fd;
}

/* Opens our own non-blocking descriptor: other processes share the original descriptor, and might not expect
 * O_NONBLOCK. For a regular file, duplicates the descriptor, so that all processes share the file position.
 * If the pipe or device cannot be opened again, mk_logwriter_flush() polls before each write. */
static int open_stream(int stream)
{
    char path[32];
    struct stat st;
    int fd = -1;
    if (fstat(stream, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", stream);
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd < 0)
        fd = fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? mk_err_last() : fd;
}

int mk_logfile_reopen(const struct mk_logfile *f)
{
    switch (f->kind) {
    case MK_LOGFILE_OFF:
        return -ENOENT;
    case MK_LOGFILE_STREAM:
        return open_stream(mk_str_eq(f->where, MK_STR("stdout")) ? STDOUT_FILENO : STDERR_FILENO);
    case MK_LOGFILE_FILE:
        return open_log_file(f, 0);
    case MK_LOGFILE_SYSLOG:
        break;
    }
    return connect_syslog();
}

int mk_logfile_create(const struct mk_logfile *f)
{
    return open_log_file(f, O_EXCL);
}

mk_err mk_logfile_open(struct mk_logfile *f, mk_str where, const struct mk_identity *workers)
{
    *f = (struct mk_logfile){.where = where, .kind = logfile_kind(where), .fd = -1, .workers = workers};
    if (f->kind == MK_LOGFILE_OFF)
        return 0;
    int fd = mk_logfile_reopen(f);
    if (fd < 0 && f->kind == MK_LOGFILE_SYSLOG) {
        f->syslog_error = (mk_err)fd;
        fd = syslog_socket();
    }
    f->fd = fd < 0 ? -1 : fd;
    f->at_once = fd >= 0 && isatty(fd);
    f->has_priorities =
        f->kind == MK_LOGFILE_SYSLOG || (f->kind == MK_LOGFILE_STREAM && mk_sd_is_journal_stream(fd));
    return fd < 0 ? fd : 0;
}

mk_err mk_logfile_replace_fd(const struct mk_logfile *f, int fd)
{
    return dup3(fd, f->fd, O_CLOEXEC) < 0 ? mk_err_last() : 0;
}

void mk_logfile_close(struct mk_logfile *f)
{
    mk_fd_close(&f->fd);
    f->kind = MK_LOGFILE_OFF;
}

/* ---- Growing ---- */

bool mk_logfile_is_full(const struct mk_logfile *f)
{
    struct stat st;
    return f->max_size && f->kind == MK_LOGFILE_FILE && f->fd >= 0 && fstat(f->fd, &st) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size >= f->max_size;
}

static mk_err rename_rotated(const char *path, unsigned from)
{
    char old[PATH_MAX + 16], new[PATH_MAX + 16];
    snprintf(old, sizeof old, from ? "%s.%u" : "%s", path, from);
    snprintf(new, sizeof new, "%s.%u", path, from + 1);
    return rename(old, new) < 0 ? mk_err_last() : 0;
}

static bool rotated_file_exists(const char *path, unsigned i)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s.%u", path, i);
    return access(name, F_OK) == 0;
}

mk_err mk_logfile_rename_rotated(const struct mk_logfile *f)
{
    struct stat ours, there;
    const char *path = f->where.p;
    if (fstat(f->fd, &ours) < 0 || lstat(path, &there) < 0)
        return mk_err_last();
    if (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
        return -ENOENT;
    if (f->keep == 0)
        return unlink(path) < 0 ? mk_err_last() : 0;
    unsigned last = 1;
    while (last < f->keep && rotated_file_exists(path, last))
        last++;
    mk_err e = 0;
    while (last-- > 0 && !e)
        e = rename_rotated(path, last);
    return e == -ENOENT ? -ESTALE : e;
}

int mk_logfile_rotate(const struct mk_logfile *f)
{
    struct stat old;
    if (fstat(f->fd, &old) < 0)
        return mk_err_last();
    mk_err e = mk_logfile_rename_rotated(f);
    if (e && e != -ENOENT)
        return e;
    int fd = e ? -EEXIST : mk_logfile_create(f);
    if (fd == -EEXIST)
        return mk_logfile_reopen(f);
    if (fd >= 0) {
        (void)!fchown(fd, old.st_uid, old.st_gid);
        (void)!fchmod(fd, old.st_mode & 07777);
    }
    return fd;
}

void mk_logfile_redirect_to_null(const struct mk_logfile *f, int null)
{
    if (f->kind == MK_LOGFILE_STREAM)
        mk_daemon_redirect_to_null(f->fd, null);
}
