/* SPDX-License-Identifier: Apache-2.0 */
#include "client_conn.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "escape.h"
#include "protocol.h"
#include "session.h"

enum {
    IN_MAX = 1 << 20,
    READ = 64 * 1024,
    CONNECT_S = 5,
    ANSWER_MS = 60000, /* the longest pause within a response */
    TRIES = 20,
    PAUSE_US = 100000,
};

void cheetah_client_conn_init(struct cheetah_client_conn *l, const char *path)
{
    *l = (struct cheetah_client_conn){
        .path = path, .command = "shell", .prefix = "", .fd = -1, .in = mk_buf_growing(IN_MAX)};
}

void cheetah_client_conn_close(struct cheetah_client_conn *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    mk_buf_clear(&l->in);
    l->in_at = 0;
}

/* ---- Printing ---- */

/* Escapes the text again, because a program that is not the server may have sent it unescaped. */
static bool print_line(FILE *to, const char *prefix, mk_str text)
{
    struct mk_buf line = mk_buf_growing(4 * IN_MAX);
    cheetah_escape_append(&line, text);
    mk_buf_add_char(&line, '\n');
    if (to == stderr)
        fflush(stdout); /* so that the lines of both streams appear in the right order */
    fputs(prefix, to);
    bool ok = !line.failed && fwrite(line.p, 1, line.len, to) == line.len;
    mk_buf_free(&line);
    return ok;
}

static int print_error(const struct cheetah_client_conn *l, const char *fmt, ...) MK_API_PRINTF(2, 3);

static int print_error(const struct cheetah_client_conn *l, const char *fmt, ...)
{
    char buf[1024];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    (void)print_line(stderr, l->prefix, mk_buf_str(&text));
    return 1;
}

/* ---- Receiving ---- */

/* Waits for more input. Returns false on failure, with errno set, and at EOF, with errno 0. */
static bool receive_bytes(struct cheetah_client_conn *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    mk_buf_consume(&l->in, l->in_at);
    l->in_at = 0;
    int ready = poll(&p, 1, ANSWER_MS);
    if (ready < 0 && errno == EINTR)
        return true;
    if (ready == 0)
        errno = ETIMEDOUT;
    if (ready <= 0)
        return false;
    if (!mk_buf_reserve(&l->in, READ)) {
        errno = EMSGSIZE;
        return false;
    }
    ssize_t n = recv(l->fd, l->in.p + l->in.len, READ, 0);
    if (n < 0 && errno == EINTR)
        return true;
    if (n == 0)
        errno = 0;
    if (n > 0)
        l->in.len += (size_t)n;
    return n > 0;
}

/* Gets a line without its newline, valid until the next call. Returns false if receive_bytes() fails. */
static bool next_line(struct cheetah_client_conn *l, mk_str *line)
{
    for (;;) {
        mk_str rest = mk_str_skip(mk_buf_str(&l->in), l->in_at);
        size_t len = mk_str_find(rest, '\n');
        if (len != MK_STR_NONE) {
            *line = mk_str_first(rest, len);
            l->in_at += len + 1;
            return true;
        }
        if (!receive_bytes(l))
            return false;
    }
}

/* ---- Connecting ---- */

struct user {
    char name[64];
};

static struct user lookup_user(uid_t uid)
{
    struct user u;
    const struct passwd *found = getpwuid(uid);
    if (found)
        snprintf(u.name, sizeof u.name, "%s", found->pw_name);
    else
        snprintf(u.name, sizeof u.name, "user %u", (unsigned)uid);
    return u;
}

static int explain_permission_error(const struct cheetah_client_conn *l)
{
    struct stat st;
    struct user you = lookup_user(geteuid());
    if (stat(l->path, &st) < 0)
        return print_error(l, "%s cannot access the folder of %s", you.name, l->path);
    struct user owner = lookup_user(st.st_uid);
    const struct group *group = getgrgid(st.st_gid);
    if (!(st.st_mode & S_IWGRP) || !group)
        return print_error(l, "%s cannot access %s: only %s has access", you.name, l->path, owner.name);
    return print_error(l, "%s cannot access %s: only %s and the group %s have access", you.name, l->path,
                       owner.name, group->gr_name);
}

static int explain_connect_error(const struct cheetah_client_conn *l, int error)
{
    if (error == ENOENT)
        return print_error(l,
                           "socket %s does not exist: is a server running with `Load cheetah` in its "
                           "[PLUGINS]? (for another path: `monkey %s -s SOCKET`)",
                           l->path, l->command);
    if (error == ECONNREFUSED)
        return print_error(l, "no server listens at %s: the server has exited", l->path);
    if (error == EACCES || error == EPERM)
        return explain_permission_error(l);
    if (error == EAGAIN)
        return print_error(l, "no server responded at %s within %d s", l->path, CONNECT_S);
    return print_error(l, "cannot connect to %s: %s", l->path, strerror(error));
}

static int connect_socket(struct cheetah_client_conn *l)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = CONNECT_S};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", l->path);
    cheetah_client_conn_close(l);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return errno;
    (void)setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return connect(l->fd, (const struct sockaddr *)&to, sizeof to) < 0 ? errno : 0;
}

static bool send_line(const struct cheetah_client_conn *l, mk_str line)
{
    char buf[CHEETAH_LINE_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&text, line);
    mk_buf_add_char(&text, '\n');
    mk_str s = mk_buf_str(&text);
    while (s.len) {
        ssize_t n = send(l->fd, s.p, s.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        s = mk_str_skip(s, n > 0 ? (size_t)n : 0);
    }
    return true;
}

/* The server has refused the connection: the reason is the content of an HTTP response. */
static int print_refusal(struct cheetah_client_conn *l)
{
    mk_str line;
    while (next_line(l, &line))
        if (mk_str_eq(line, MK_STR("\r")) && next_line(l, &line))
            return print_error(l, "%.*s", MK_STR_ARG(line));
    return print_error(l, "the program at %s is not a Monkey server", l->path);
}

static int read_greeting(struct cheetah_client_conn *l, mk_str line)
{
    static const mk_str expected = MK_STR_INIT("+" CHEETAH_GREETING " ");
    if (mk_str_starts(line, MK_STR("HTTP/1.1 ")))
        return print_refusal(l);
    if (mk_str_starts(line, MK_STR("+cheetah ")) && !mk_str_starts(line, expected))
        return print_error(l,
                           "the server at %s uses another version of the protocol: use its own `monkey %s`",
                           l->path, l->command);
    if (!mk_str_starts(line, expected))
        return print_error(l, "the program at %s is not a Monkey server", l->path);
    line = mk_str_skip(line, expected.len);
    snprintf(l->greeting, sizeof l->greeting, "%.*s", MK_STR_ARG(line));
    return 0;
}

enum { AGAIN = -1 };

static int open_and_read_greeting(struct cheetah_client_conn *l)
{
    mk_str line;
    int e = connect_socket(l);
    if (e)
        return explain_connect_error(l, e);
    (void)send_line(l, MK_STR(CHEETAH_HELLO)); /* if this fails, the server may have sent a reason */
    if (next_line(l, &line))
        return mk_str_starts(line, MK_STR("!")) ? AGAIN : read_greeting(l, line);
    /* The process exited before it accepted the connection; another process will replace it. */
    if (errno == 0 || errno == ECONNRESET)
        return AGAIN;
    return print_error(l, "the program at %s sent no greeting: %s", l->path, strerror(errno));
}

int cheetah_client_conn_open(struct cheetah_client_conn *l)
{
    int code = AGAIN;
    for (unsigned i = 0; i < TRIES && code == AGAIN; i++) {
        if (i)
            usleep(PAUSE_US);
        code = open_and_read_greeting(l);
        if (code)
            cheetah_client_conn_close(l);
    }
    return code == AGAIN ? print_error(l, "the server at %s closes every session at once", l->path) : code;
}

/* ---- Commands ---- */

void cheetah_client_conn_check_eof(struct cheetah_client_conn *l)
{
    char c;
    if (l->fd < 0)
        return;
    bool has_input =
        l->in_at < l->in.len || recv(l->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
    if (has_input) /* the server has sent a reason for closing the session, or has closed it */
        cheetah_client_conn_close(l);
}

enum { ELSEWHERE = -1 };

static int report_lost_connection(struct cheetah_client_conn *l)
{
    const char *message =
        errno == 0 || errno == ECONNRESET ? "the process exited during the command" : strerror(errno);
    cheetah_client_conn_close(l);
    return print_error(l, "the response is incomplete: %s", message);
}

static int flush_output(struct cheetah_client_conn *l, int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    return print_error(l, "cannot write: %s", strerror(errno));
}

/* Prints the response. Returns ELSEWHERE if the command was not executed: send it again in a new session. */
static int print_response(struct cheetah_client_conn *l)
{
    mk_str line;
    while (next_line(l, &line)) {
        mk_str text = mk_str_skip(line, 1);
        switch (line.len ? line.p[0] : 0) {
        case ' ':
            (void)print_line(stdout, "", text);
            break;
        case '#':
            (void)print_line(stderr, "", text);
            break;
        case CHEETAH_OK:
            if (text.len)
                (void)print_line(stdout, "", text);
            return flush_output(l, 0);
        case CHEETAH_FAILED:
            (void)print_line(stderr, l->prefix, text);
            return flush_output(l, 1);
        case CHEETAH_USAGE_ERROR:
            (void)print_line(stderr, l->prefix, text);
            return flush_output(l, 2);
        case CHEETAH_RECONNECT:
            return ELSEWHERE;
        default:
            cheetah_client_conn_close(l);
            return print_error(l, "%s violates the protocol", l->path);
        }
    }
    return report_lost_connection(l);
}

int cheetah_client_conn_run_command(struct cheetah_client_conn *l, mk_str command)
{
    for (unsigned i = 0; i < TRIES; i++) {
        cheetah_client_conn_check_eof(l);
        if (l->fd < 0 && cheetah_client_conn_open(l))
            return 1;
        int code = ELSEWHERE; /* also if send_line() fails: servers execute only complete lines */
        if (send_line(l, command))
            code = print_response(l);
        if (code != ELSEWHERE)
            return code;
        cheetah_client_conn_close(l);
        usleep(PAUSE_US);
    }
    return print_error(l, "the server at %s is shutting down", l->path);
}
