/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/logwriter.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/sigpipe.h"

enum { PRIORITY_LEN = 3 }; /* "<6>" */

/* Detects which kind of file the descriptor refers to. */
static void detect_file_kind(struct mk_logwriter *w)
{
    struct stat st;
    int fd = w->file ? w->file->fd : -1;
    bool known = fd >= 0 && fstat(fd, &st) == 0;
    w->is_file = known && S_ISREG(st.st_mode);
    w->is_socket = known && S_ISSOCK(st.st_mode);
    w->may_wait = known && !w->is_file && !w->is_socket && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

void mk_logwriter_init(struct mk_logwriter *w, const struct mk_logfile *file)
{
    *w = (struct mk_logwriter){.file = file, .lines = mk_buf_growing(MK_LOGWRITER_BLOCK)};
    detect_file_kind(w);
}

void mk_logwriter_fini(struct mk_logwriter *w)
{
    mk_logwriter_flush(w);
    mk_buf_free(&w->lines);
}

/* Call it after a flush. Discards the rest of a partly written line, which then counts as lost. */
static void reset_writer(struct mk_logwriter *w, const struct mk_logfile *file)
{
    w->lost += w->has_partial_line;
    w->has_partial_line = false;
    mk_buf_clear(&w->lines);
    w->file = file;
    detect_file_kind(w);
}

void mk_logwriter_switch_file(struct mk_logwriter *w, const struct mk_logfile *file)
{
    mk_logwriter_flush(w);
    reset_writer(w, file);
}

mk_err mk_logwriter_replace_fd(struct mk_logwriter *w, int fd)
{
    mk_logwriter_flush(w);
    mk_err e = mk_logfile_replace_fd(w->file, fd);
    if (!e)
        reset_writer(w, w->file);
    return e;
}

static void count_lost(struct mk_logwriter *w, uint64_t n, mk_err error)
{
    w->lost += n;
    w->lost_by = n ? error : w->lost_by;
}

const char *mk_logwriter_loss_reason(const struct mk_logwriter *w)
{
    bool is_syslog = w->file && w->file->kind == MK_LOGFILE_SYSLOG;
    switch (w->lost_by) {
    case -EAGAIN:
        return "its reader is too slow";
    case -EPIPE:
        return "it has no reader";
    case -ENOENT:
    case -ECONNREFUSED:
    case -ENOTCONN:
        return is_syslog ? "no syslog service listens on /dev/log" : mk_err_text(w->lost_by);
    default:
        return mk_err_text(w->lost_by);
    }
}

/* ---- Syslog ---- */

static mk_err send_datagram(const struct mk_logwriter *w, mk_str text)
{
    return send(w->file->fd, text.p, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? mk_err_last() : 0;
}

/* A syslog daemon that was started or restarted listens on a new socket: connects to that socket. */
static mk_err reconnect_syslog(struct mk_logwriter *w, mk_err error)
{
    if (error != -ECONNREFUSED && error != -ENOTCONN && error != -EPIPE)
        return error;
    int fd = mk_logfile_reopen(w->file);
    if (fd < 0)
        return (mk_err)fd;
    mk_err e = dup3(fd, w->file->fd, O_CLOEXEC) < 0 ? mk_err_last() : 0;
    mk_fd_close(&fd);
    return e;
}

/* Removes the priority that mk_logwriter_reserve() wrote before the line, and returns its severity. The other
 * lines of a message with several lines have no priority: LOG_INFO. */
static int cut_priority(mk_str *line)
{
    if (line->len < PRIORITY_LEN || line->p[0] != '<' || line->p[2] != '>')
        return LOG_INFO;
    int severity = (line->p[1] - '0') & LOG_PRIMASK;
    *line = mk_str_skip(*line, PRIORITY_LEN);
    return severity;
}

/* Sends one datagram per line, with the facility `daemon`. */
static void send_to_syslog(struct mk_logwriter *w)
{
    char buf[2048];
    bool may_connect = true; /* one reconnect per flush */
    mk_str rest = mk_buf_str(&w->lines);
    while (rest.len) {
        struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
        mk_str line = mk_str_cut(&rest, '\n');
        int severity = cut_priority(&line);
        mk_buf_addf(&text, "<%d>monkey[%d]: ", LOG_DAEMON | severity, (int)getpid());
        mk_buf_add(&text, mk_str_first(line, sizeof buf - text.len));
        mk_err e = send_datagram(w, mk_buf_str(&text));
        if (e && may_connect) {
            may_connect = false;
            e = reconnect_syslog(w, e);
            e = e ? e : send_datagram(w, mk_buf_str(&text));
        }
        if (e)
            count_lost(w, 1, e);
    }
    mk_buf_clear(&w->lines);
}

/* ---- Lines ---- */

static void append_priority(struct mk_logwriter *w, enum mk_log_level level)
{
    static const char priorities[MK_LOG_LEVEL_COUNT][PRIORITY_LEN + 1] = {
        [MK_LOG_ERROR] = "<3>", [MK_LOG_WARN] = "<4>", [MK_LOG_INFO] = "<6>", [MK_LOG_DEBUG] = "<7>"};
    if (w->file->has_priorities)
        mk_buf_add(&w->lines, mk_str_from_c(priorities[level]));
}

struct mk_buf *mk_logwriter_reserve(struct mk_logwriter *w, enum mk_log_level level, size_t max)
{
    max += PRIORITY_LEN;
    if (w->lines.len + max > MK_LOGWRITER_BLOCK)
        mk_logwriter_flush(w);
    if (mk_buf_reserve(&w->lines, max)) {
        append_priority(w, level);
        return &w->lines;
    }
    w->lines.failed = false;
    count_lost(w, 1, -ENOMEM);
    return NULL;
}

bool mk_logwriter_commit(struct mk_logwriter *w)
{
    if (w->file->at_once)
        mk_logwriter_flush(w);
    return w->lines.len > 0;
}

static uint64_t count_lines(mk_str text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

bool mk_logwriter_write_now(struct mk_logwriter *w, enum mk_log_level level, mk_str line)
{
    mk_logwriter_flush(w); /* an earlier line, not this one, may be lost */
    uint64_t lost = w->lost;
    struct mk_buf *out = mk_logwriter_reserve(w, level, line.len);
    if (!out)
        return false;
    mk_buf_add(out, line);
    mk_logwriter_flush(w);
    return w->lost == lost && !w->has_partial_line;
}

static ssize_t write_pipe(const struct mk_logwriter *w, mk_str text)
{
    struct mk_sigpipe_guard quiet;
    mk_sigpipe_block(&quiet);
    ssize_t n = write(w->file->fd, text.p, text.len);
    mk_sigpipe_restore(&quiet, n);
    return n;
}

/* Writes as much as the descriptor accepts now. */
static ssize_t write_nowait(const struct mk_logwriter *w, mk_str text)
{
    struct pollfd p = {.fd = w->file->fd, .events = POLLOUT};
    if (w->is_socket)
        return send(w->file->fd, text.p, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (w->is_file)
        return write(w->file->fd, text.p, text.len);
    if (!w->may_wait)
        return write_pipe(w, text);
    if (poll(&p, 1, 0) == 1)
        return write_pipe(w, mk_str_first(text, PIPE_BUF));
    errno = EAGAIN;
    return -1;
}

/* Returns whole lines up to the size that a pipe takes atomically, so that the lines of several workers do
 * not mix. */
static mk_str atomic_piece(const struct mk_logwriter *w, mk_str text)
{
    if (w->is_file || text.len <= PIPE_BUF)
        return text;
    size_t end = mk_str_find_last(mk_str_first(text, PIPE_BUF), '\n');
    return mk_str_first(text, (end == MK_STR_NONE ? mk_str_find(text, '\n') : end) + 1);
}

/* Writes as many lines as possible. Returns the unwritten rest; *error is the reason for it. */
static mk_str write_lines(const struct mk_logwriter *w, mk_str rest, mk_err *error)
{
    ssize_t n = 1;
    while (rest.len && n > 0) {
        n = write_nowait(w, atomic_piece(w, rest));
        *error = n < 0 ? mk_err_last() : -EIO;
        rest = mk_str_skip(rest, n > 0 ? (size_t)n : 0);
    }
    return rest;
}

/* Removes a partly written line from the file. Another process can have written after that line only if the
 * disk had free space again immediately. */
static bool truncate_partial_line(const struct mk_logwriter *w, mk_str written)
{
    struct stat st;
    size_t line_end = mk_str_find_last(written, '\n');
    if (!w->is_file || (line_end == MK_STR_NONE && w->has_partial_line) || fstat(w->file->fd, &st) < 0)
        return false;
    off_t partial_len = (off_t)(written.len - (line_end == MK_STR_NONE ? 0 : line_end + 1));
    return st.st_size >= partial_len && ftruncate(w->file->fd, st.st_size - partial_len) == 0;
}

void mk_logwriter_flush(struct mk_logwriter *w)
{
    if (w->lines.len == 0)
        return;
    if (w->file->kind == MK_LOGFILE_SYSLOG) {
        send_to_syslog(w);
        return;
    }
    mk_err error = 0;
    mk_str all = mk_buf_str(&w->lines), rest = write_lines(w, all, &error);
    mk_str written = mk_str_first(all, all.len - rest.len);
    w->has_partial_line =
        rest.len && (written.len ? !mk_str_ends(written, MK_STR("\n")) && !truncate_partial_line(w, written)
                                 : w->has_partial_line);
    count_lost(w, count_lines(rest) - w->has_partial_line, error);
    /* The rest of a partly written line comes first. */
    size_t kept = w->has_partial_line ? mk_str_find(rest, '\n') + 1 : 0;
    mk_buf_consume(&w->lines, written.len);
    w->lines.len = kept;
}
