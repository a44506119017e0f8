/* SPDX-License-Identifier: Apache-2.0 */
#include "log_forwarder.h"

#include "log_json.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/json.h>
#include <monkey/utf8.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
    REST_MAX = 16 * 1024,
    OUT_MAX = 4 << 20 /* enough for the worst case of empty lines, each with a prefix */,
    LINE = 1024
};

void isolate_log_forwarder_init(struct isolate_log_forwarder *l, const char *name, const char *log,
                                bool has_priorities, bool is_json)
{
    *l = (struct isolate_log_forwarder){.name = name, .log = log, .rest = mk_buf_growing(REST_MAX)};
    l->has_priorities = has_priorities;
    l->is_json = is_json;
    l->to_syslog = strcmp(log, "syslog") == 0;
    l->to_file = !l->to_syslog && strcmp(log, "stderr") != 0;
    if (l->to_syslog)
        openlog("monkey", LOG_PID, LOG_DAEMON);
}

/* Opens the file each time, because it may have been renamed. The server has created it in a folder where
 * other users cannot replace it. */
static int open_log_file(const struct isolate_log_forwarder *l)
{
    struct stat st;
    int fd = open(l->log, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid())
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void write_to_log(const struct isolate_log_forwarder *l, mk_str text)
{
    int fd = l->to_file ? open_log_file(l) : STDERR_FILENO;
    while (l->to_syslog && text.len) {
        mk_str line = mk_str_cut(&text, '\n'); /* begins with a priority such as "<6>" */
        syslog(line.p[1] - '0', "%.*s", MK_STR_ARG(mk_str_skip(line, 3)));
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

/* ---- Output of the group ---- */

/* A log line of the group's server: "TIME [level] PID: message". */
struct parsed_line {
    const char *level;
    int pid; /* 0: the line gets the supervisor's pid */
    mk_str message;
};

static const char *const levels[] = {"error", "warn", "info", "debug"};

static const char *parse_level(mk_str *rest)
{
    for (size_t i = 0; i < MK_LEN(levels); i++) {
        mk_str level = mk_str_from_c(levels[i]);
        mk_str after = mk_str_skip(*rest, 1 + level.len);
        if (mk_str_starts(*rest, MK_STR("[")) && mk_str_starts(mk_str_skip(*rest, 1), level) &&
            mk_str_starts(after, MK_STR("] "))) {
            *rest = mk_str_skip(after, 2);
            return levels[i];
        }
    }
    return NULL;
}

/* Returns whether the pid is that of a process of the group, possibly a dead one. No line may claim the pid
 * of another process. */
static bool may_claim_pid(const struct isolate_log_forwarder *l, uint64_t pid)
{
    if (pid == 0 || pid > INT32_MAX)
        return false;
    pid_t group = getpgid((pid_t)pid);
    return group < 0 ? errno == ESRCH : l->group && group == l->group;
}

/* Parses a log line. A service can imitate log lines of another server, so the times are ignored, and only
 * pids of the group are accepted. */
static struct parsed_line parse_log_line(const struct isolate_log_forwarder *l, mk_str line)
{
    struct parsed_line plain = {.level = "info", .message = line}, found = {.pid = 0};
    mk_str rest = line, time = mk_str_cut(&rest, ' ');
    uint64_t pid;
    bool has_time = time.len >= 20 && mk_char_is_digit(time.p[0]) && time.p[10] == 'T';
    found.level = has_time && rest.p ? parse_level(&rest) : NULL;
    if (!found.level)
        return plain;
    size_t colon = mk_str_find(rest, ':');
    if (colon == MK_STR_NONE || !mk_num_parse(mk_str_first(rest, colon), &pid) || !may_claim_pid(l, pid))
        return plain;
    found.pid = (int)pid;
    found.message = mk_str_skip(rest, colon + 1);
    if (mk_str_starts(found.message, MK_STR(" ")))
        found.message = mk_str_skip(found.message, 1);
    return found;
}

/* Matches C0, DEL and C1 (U+0080 to U+009F), which terminals interpret. */
static bool is_control(uint32_t c)
{
    return (c < ' ' && c != '\t') || (c >= 0x7f && c < 0xa0);
}

static void append_sanitized(struct mk_buf *out, mk_str text)
{
    while (text.len) {
        uint32_t c;
        size_t n = mk_utf8_decode(text, &c);
        mk_str character = mk_str_first(text, n ? n : 1);
        if (n && !is_control(c))
            mk_buf_add(out, character);
        else
            for (size_t i = 0; i < character.len; i++)
                mk_buf_addf(out, "\\x%02X", (unsigned char)character.p[i]);
        text = mk_str_skip(text, character.len);
    }
}

static int syslog_priority(const char *level)
{
    static const int priorities[MK_LEN(levels)] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    size_t i = 0;
    while (i < MK_LEN(levels) - 1 && strcmp(levels[i], level) != 0)
        i++;
    return priorities[i];
}

/* Omits the time and the supervisor's pid, which syslog and the journal add to every line. */
static void append_short_prefix(const struct isolate_log_forwarder *l, struct mk_buf *out, const char *level,
                                int pid)
{
    mk_buf_addf(out, "<%d>%s", syslog_priority(level), l->name);
    if (pid)
        mk_buf_addf(out, "[%d]", pid);
    mk_buf_add(out, MK_STR(": "));
}

static void format_time(char stamp[40])
{
    struct tm t;
    time_t now = time(NULL);
    localtime_r(&now, &t);
    strftime(stamp, 40, "%Y-%m-%dT%H:%M:%S%z", &t);
}

static void append_prefix(const struct isolate_log_forwarder *l, struct mk_buf *out, const char *level,
                          int pid)
{
    char stamp[40];
    if (l->has_priorities) {
        append_short_prefix(l, out, level, pid);
        return;
    }
    format_time(stamp);
    mk_buf_addf(out, "%s [%s] %d: %s: ", stamp, level, pid ? pid : (int)getpid(), l->name);
}

/* ---- JSON ---- */

/* Begins an object up to the member `message`. */
static struct mk_json_writer begin_json_line(const struct isolate_log_forwarder *l, struct mk_buf *out,
                                             const char *level, int pid)
{
    char stamp[40];
    format_time(stamp);
    if (l->has_priorities)
        mk_buf_addf(out, "<%d>", syslog_priority(level));
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "time"), stamp);
    mk_json_cstr(mk_json_key(&w, "level"), level);
    mk_json_int(mk_json_key(&w, "pid"), pid ? pid : (int)getpid());
    mk_json_cstr(mk_json_key(&w, "isolate"), l->name);
    (void)mk_json_key(&w, "message");
    return w;
}

static void append_plain_json_line(const struct isolate_log_forwarder *l, struct mk_buf *out,
                                   const char *level, int pid, mk_str message)
{
    struct mk_json_writer w = begin_json_line(l, out, level, pid);
    mk_json_string(&w, message);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

static const char *find_level(mk_str word)
{
    for (size_t i = 0; i < MK_LEN(levels); i++)
        if (mk_str_eq(word, mk_str_from_c(levels[i])))
            return levels[i];
    return "info";
}

/* As in the text format, only the level, the message, the fields and a plausible process ID are taken from
 * the line. Any other output of the group becomes a message. */
static void append_json_line(const struct isolate_log_forwarder *l, struct mk_buf *out, mk_str line)
{
    struct mk_buf members = mk_buf_growing(2 * REST_MAX);
    struct isolate_log_json found;
    uint64_t pid;
    if (isolate_log_json_parse(line, &found, &members)) {
        bool has_pid = mk_num_parse(found.pid, &pid) && may_claim_pid(l, pid);
        struct mk_json_writer w = begin_json_line(l, out, find_level(found.level), has_pid ? (int)pid : 0);
        mk_json_raw(&w, found.message);
        mk_buf_add(out, mk_buf_str(&members));
        mk_json_end_object(&w);
        mk_buf_add_char(out, '\n');
    } else {
        struct parsed_line text = parse_log_line(l, line);
        append_plain_json_line(l, out, text.level, text.pid, text.message);
    }
    mk_buf_free(&members);
}

static void append_line(const struct isolate_log_forwarder *l, struct mk_buf *out, mk_str line)
{
    if (l->is_json) {
        append_json_line(l, out, line);
        return;
    }
    struct parsed_line parsed_line = parse_log_line(l, line);
    append_prefix(l, out, parsed_line.level, parsed_line.pid);
    append_sanitized(out, parsed_line.message);
    mk_buf_add_char(out, '\n');
}

static void finish_line(struct isolate_log_forwarder *l, struct mk_buf *out)
{
    append_line(l, out, mk_buf_str(&l->rest));
    mk_buf_clear(&l->rest);
}

/* Splits an overlong line, because text from a client must not hide the lines that follow. */
static void buffer_partial_line(struct isolate_log_forwarder *l, struct mk_buf *out, mk_str text)
{
    while (text.len) {
        size_t space = REST_MAX - l->rest.len;
        mk_buf_add(&l->rest, mk_str_first(text, space));
        if (l->rest.failed) { /* out of memory */
            mk_buf_free(&l->rest);
            l->rest = mk_buf_growing(REST_MAX);
        }
        text = mk_str_skip(text, space);
        if (text.len)
            finish_line(l, out);
    }
}

static void write_complete_lines(const struct isolate_log_forwarder *l, struct mk_buf *out)
{
    if (out->len)
        write_to_log(l, mk_buf_str(out));
    mk_buf_free(out);
}

void isolate_log_forwarder_append(struct isolate_log_forwarder *l, mk_str text)
{
    struct mk_buf out = mk_buf_growing(OUT_MAX);
    size_t end;
    while ((end = mk_str_find(text, '\n')) != MK_STR_NONE) {
        buffer_partial_line(l, &out, mk_str_first(text, end));
        finish_line(l, &out);
        text = mk_str_skip(text, end + 1);
    }
    buffer_partial_line(l, &out, text);
    write_complete_lines(l, &out);
}

void isolate_log_forwarder_flush(struct isolate_log_forwarder *l)
{
    struct mk_buf out = mk_buf_growing(OUT_MAX);
    if (l->rest.len)
        finish_line(l, &out);
    write_complete_lines(l, &out);
}

void isolate_log_forwarder_printf(struct isolate_log_forwarder *l, const char *level, const char *fmt, ...)
{
    char text[LINE], buf[7 * LINE];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l->is_json) {
        append_plain_json_line(l, &line, level, 0, mk_str_from_c(text));
    } else {
        append_prefix(l, &line, level, 0);
        mk_buf_addf(&line, "%s\n", text);
    }
    if (!line.failed)
        write_to_log(l, mk_buf_str(&line));
}
