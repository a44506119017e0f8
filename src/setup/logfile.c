/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/logfile.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "os/daemon.h"
#include "os/fd.h"
#include "os/guarded.h"

static int connect_syslog(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return mk_err_last();
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    mk_err e = mk_err_last();
    mk_fd_close(&fd);
    return e;
}

static enum mk_logfile_kind kind_of(mk_str where)
{
    if (where.len == 0 || mk_str_eq_nocase(where, MK_STR("off")))
        return MK_LOGFILE_OFF;
    if (mk_str_eq(where, MK_STR("stdout")) || mk_str_eq(where, MK_STR("stderr")))
        return MK_LOGFILE_STREAM;
    return mk_str_eq(where, MK_STR("syslog")) ? MK_LOGFILE_SYSLOG : MK_LOGFILE_FILE;
}

bool mk_logfile_is_word(mk_str where)
{
    return kind_of(where) != MK_LOGFILE_FILE;
}

/* Non-blocking: a named pipe without a reader must not block the start, and a full one must not block the
 * server. */
static int open_file(const struct mk_logfile *f, int only)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | only;
    if (f->workers)
        return mk_guarded_open(f->where.p, flags, 0640, f->workers);
    int fd = open(f->where.p, flags, 0640);
    return fd < 0 ? mk_err_last() : fd;
}

/* Opens our own non-blocking descriptor: other processes share the given one and may not expect O_NONBLOCK. A
 * file keeps the shared one, because all processes share its position. If the kernel does not open one,
 * mk_logfile_flush() polls before each write. */
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

int mk_logfile_open_again(const struct mk_logfile *f)
{
    switch (f->kind) {
    case MK_LOGFILE_OFF:
        return -ENOENT;
    case MK_LOGFILE_STREAM:
        return open_stream(mk_str_eq(f->where, MK_STR("stdout")) ? STDOUT_FILENO : STDERR_FILENO);
    case MK_LOGFILE_FILE:
        return open_file(f, 0);
    case MK_LOGFILE_SYSLOG:
        break;
    }
    return connect_syslog();
}

int mk_logfile_make(const struct mk_logfile *f)
{
    return open_file(f, O_EXCL);
}

/* Finds out which kind of file the descriptor refers to. */
static void look(struct mk_logfile *f)
{
    struct stat st;
    bool known = f->fd >= 0 && fstat(f->fd, &st) == 0;
    f->is_file = known && S_ISREG(st.st_mode);
    f->is_socket = known && S_ISSOCK(st.st_mode);
    f->may_wait = known && !f->is_file && !f->is_socket && !(fcntl(f->fd, F_GETFL) & O_NONBLOCK);
}

mk_err mk_logfile_open(struct mk_logfile *f, mk_str where, const struct mk_identity *workers)
{
    *f = (struct mk_logfile){.where = where, .kind = kind_of(where), .fd = -1, .workers = workers};
    f->lines = mk_buf_growing(MK_LOGFILE_BLOCK);
    if (f->kind == MK_LOGFILE_OFF)
        return 0;
    int fd = mk_logfile_open_again(f);
    f->fd = fd < 0 ? -1 : fd;
    f->at_once = fd >= 0 && isatty(fd);
    look(f);
    return fd < 0 ? fd : 0;
}

mk_err mk_logfile_exchange(struct mk_logfile *f, int fd)
{
    mk_logfile_flush(f);
    if (dup3(fd, f->fd, O_CLOEXEC) < 0)
        return mk_err_last();
    f->lost += f->half; /* its beginning is in the old file */
    f->half = false;
    mk_buf_clear(&f->lines);
    look(f);
    return 0;
}

void mk_logfile_close(struct mk_logfile *f)
{
    mk_logfile_flush(f);
    mk_buf_free(&f->lines);
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

static mk_err shift(const char *path, unsigned from)
{
    char old[PATH_MAX + 16], new[PATH_MAX + 16];
    snprintf(old, sizeof old, from ? "%s.%u" : "%s", path, from);
    snprintf(new, sizeof new, "%s.%u", path, from + 1);
    return rename(old, new) < 0 ? mk_err_last() : 0;
}

static bool is_there(const char *path, unsigned i)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s.%u", path, i);
    return access(name, F_OK) == 0;
}

mk_err mk_logfile_shift(const struct mk_logfile *f)
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
    while (last < f->keep && is_there(path, last))
        last++;
    mk_err e = 0;
    while (last-- > 0 && !e)
        e = shift(path, last);
    return e == -ENOENT ? -ESTALE : e;
}

void mk_logfile_silence(struct mk_logfile *f, int null)
{
    if (f->kind == MK_LOGFILE_STREAM)
        mk_daemon_silence(f->fd, null);
}

static bool send_datagram(const struct mk_logfile *f, mk_str text)
{
    return send(f->fd, text.p, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* A restarted syslog daemon listens on a new socket: connect again. */
static bool connect_again(struct mk_logfile *f)
{
    int fd = errno == ECONNREFUSED || errno == ENOTCONN || errno == EPIPE ? connect_syslog() : -1;
    bool done = fd >= 0 && dup3(fd, f->fd, O_CLOEXEC) >= 0;
    mk_fd_close(&fd);
    return done;
}

/* One datagram per line, facility `daemon`. */
static void send_to_syslog(struct mk_logfile *f, int severity)
{
    char room[2048];
    bool may_connect = true; /* one reconnect per flush */
    mk_str rest = mk_buf_str(&f->lines);
    while (rest.len) {
        struct mk_buf text = mk_buf_fixed(room, sizeof room);
        mk_str line = mk_str_cut(&rest, '\n');
        mk_buf_addf(&text, "<%d>monkey[%d]: ", LOG_DAEMON | severity, (int)getpid());
        mk_buf_add(&text, mk_str_first(line, sizeof room - text.len));
        bool sent = send_datagram(f, mk_buf_str(&text));
        if (!sent && may_connect) {
            may_connect = false;
            sent = connect_again(f) && send_datagram(f, mk_buf_str(&text));
        }
        f->lost += !sent;
    }
    mk_buf_clear(&f->lines);
}

struct mk_buf *mk_logfile_room(struct mk_logfile *f, size_t max)
{
    if (f->lines.len + max > MK_LOGFILE_BLOCK)
        mk_logfile_flush(f);
    if (mk_buf_reserve(&f->lines, max))
        return &f->lines;
    f->lines.failed = false;
    f->lost++;
    return NULL;
}

bool mk_logfile_added(struct mk_logfile *f)
{
    if (f->at_once)
        mk_logfile_flush(f);
    return f->lines.len > 0;
}

static uint64_t count_lines(mk_str text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

bool mk_logfile_say(struct mk_logfile *f, enum mk_log_level level, mk_str line)
{
    static const int severities[MK_LOG_LEVELS] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    if (f->kind == MK_LOGFILE_SYSLOG)
        mk_logfile_flush(f); /* pending lines have their own severity */
    uint64_t lost = f->lost;
    struct mk_buf *out = mk_logfile_room(f, line.len);
    if (!out)
        return false;
    mk_buf_add(out, line);
    if (f->kind == MK_LOGFILE_SYSLOG)
        send_to_syslog(f, severities[level]);
    else
        mk_logfile_flush(f);
    return f->lost == lost && !f->half;
}

/* Writes as much as fits now. */
static ssize_t put(const struct mk_logfile *f, mk_str text)
{
    struct pollfd p = {.fd = f->fd, .events = POLLOUT};
    if (f->is_socket)
        return send(f->fd, text.p, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!f->may_wait)
        return write(f->fd, text.p, text.len);
    return poll(&p, 1, 0) == 1 ? write(f->fd, text.p, mk_min(text.len, PIPE_BUF)) : -1;
}

/* Whole lines up to the size that a pipe takes atomically, so that the lines of several workers do not mix.
 */
static mk_str piece_of(const struct mk_logfile *f, mk_str text)
{
    if (f->is_file || text.len <= PIPE_BUF)
        return text;
    size_t end = mk_str_find_last(mk_str_first(text, PIPE_BUF), '\n');
    return mk_str_first(text, (end == MK_STR_NONE ? mk_str_find(text, '\n') : end) + 1);
}

/* Returns the unwritten rest. */
static mk_str write_pieces(const struct mk_logfile *f, mk_str rest)
{
    ssize_t n = 1;
    while (rest.len && n > 0) {
        n = put(f, piece_of(f, rest));
        rest = mk_str_skip(rest, n > 0 ? (size_t)n : 0);
    }
    return rest;
}

/* Removes a partly written line from the file. Another process can have written after it only if the disk had
 * free space again immediately. */
static bool cut_half(const struct mk_logfile *f, mk_str written)
{
    struct stat st;
    size_t line_end = mk_str_find_last(written, '\n');
    if (!f->is_file || (line_end == MK_STR_NONE && f->half) || fstat(f->fd, &st) < 0)
        return false;
    off_t half = (off_t)(written.len - (line_end == MK_STR_NONE ? 0 : line_end + 1));
    return st.st_size >= half && ftruncate(f->fd, st.st_size - half) == 0;
}

void mk_logfile_flush(struct mk_logfile *f)
{
    if (f->lines.len == 0)
        return;
    if (f->kind == MK_LOGFILE_SYSLOG) {
        send_to_syslog(f, LOG_INFO);
        return;
    }
    mk_str all = mk_buf_str(&f->lines), rest = write_pieces(f, all);
    mk_str written = mk_str_first(all, all.len - rest.len);
    f->half =
        rest.len && (written.len ? !mk_str_ends(written, MK_STR("\n")) && !cut_half(f, written) : f->half);
    f->lost += count_lines(rest) - f->half;
    /* The rest of a partly written line comes first. */
    size_t kept = f->half ? mk_str_find(rest, '\n') + 1 : 0;
    mk_buf_drop(&f->lines, written.len);
    f->lines.len = kept;
}
