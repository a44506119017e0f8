/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { REST_MAX = 16 * 1024, LINE = 1024 };

void isolate_lines_init(struct isolate_lines *l, const char *name, const char *log)
{
    *l = (struct isolate_lines){.name = name, .log = log, .rest = mk_buf_growing(REST_MAX)};
    l->to_syslog = strcmp(log, "syslog") == 0;
    l->to_file = !l->to_syslog && strcmp(log, "stderr") != 0;
    if (l->to_syslog)
        openlog("monkey", LOG_PID, LOG_DAEMON);
}

/* Opened again each time: the file may have been renamed. The server has made it; it is none that others
 * could have put in its place. */
static int open_log(const struct isolate_lines *l)
{
    struct stat st;
    int fd = open(l->log, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid())
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void write_out(const struct isolate_lines *l, mk_str text)
{
    int fd = l->to_file ? open_log(l) : STDERR_FILENO;
    while (l->to_syslog && text.len) {
        mk_str line = mk_str_cut(&text, '\n');
        syslog(LOG_NOTICE, "%.*s", MK_STR_ARG(line));
    }
    while (fd >= 0 && text.len) {
        ssize_t n = write(fd, text.p, text.len);
        if (n <= 0)
            break;
        text = mk_str_skip(text, (size_t)n);
    }
    if (fd >= 0 && l->to_file)
        close(fd);
}

/* Where the message begins: behind "TIME [level] PID: ", if it has that. */
static size_t find_message(mk_str line)
{
    size_t level = mk_str_find(line, '['), colon = mk_str_find(line, ':');
    mk_str rest = mk_str_skip(line, level == MK_STR_NONE ? line.len : level);
    size_t end = mk_str_find(rest, ']');
    if (!line.len || line.p[0] < '0' || line.p[0] > '9' || end == MK_STR_NONE || colon == MK_STR_NONE)
        return 0;
    colon = mk_str_find(mk_str_skip(rest, end), ':');
    return colon == MK_STR_NONE ? 0 : level + end + colon + 2;
}

static void add_line(const struct isolate_lines *l, struct mk_buf *out, mk_str line)
{
    size_t at = find_message(line);
    if (at > line.len)
        at = 0;
    mk_buf_add(out, mk_str_first(line, at));
    mk_buf_addf(out, "%s: ", l->name);
    mk_buf_add(out, mk_str_skip(line, at));
    mk_buf_add_char(out, '\n');
}

void isolate_lines_take(struct isolate_lines *l, mk_str text)
{
    struct mk_buf out = mk_buf_growing(8 * REST_MAX);
    mk_buf_add(&l->rest, text);
    size_t end;
    while ((end = mk_str_find(mk_buf_str(&l->rest), '\n')) != MK_STR_NONE) {
        add_line(l, &out, mk_str_of(l->rest.p, end));
        mk_buf_drop(&l->rest, end + 1);
    }
    if (l->rest.failed) { /* a line without an end */
        mk_buf_free(&l->rest);
        l->rest = mk_buf_growing(REST_MAX);
    }
    if (out.len)
        write_out(l, mk_buf_str(&out));
    mk_buf_free(&out);
}

void isolate_lines_say(struct isolate_lines *l, const char *level, const char *fmt, ...)
{
    char text[LINE], stamp[40], line[2 * LINE];
    struct tm t;
    time_t now = time(NULL);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    localtime_r(&now, &t);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S%z", &t);
    int n = snprintf(line, sizeof line, "%s [%s] %d: %s: %s\n", stamp, level, (int)getpid(), l->name, text);
    if (n > 0 && (size_t)n < sizeof line)
        write_out(l, mk_str_of(line, (size_t)n));
}
