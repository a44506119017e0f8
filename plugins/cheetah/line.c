/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

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

#include "protocol.h"
#include "safe.h"
#include "session.h"

enum {
    IN_MAX = 1 << 20,
    READ = 64 * 1024,
    CONNECT_S = 5,
    ANSWER_MS = 60000, /* between two pieces of it */
    TRIES = 20,
    PAUSE_US = 100000,
};

void shell_line_init(struct shell_line *l, const char *path)
{
    *l = (struct shell_line){.path = path, .prefix = "", .fd = -1, .in = mk_buf_growing(IN_MAX)};
}

void shell_line_close(struct shell_line *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    mk_buf_clear(&l->in);
    l->in_at = 0;
}

/* ---- Printing ---- */

/* The server has made it safe already, if it is what it seems to be. */
static bool print(FILE *to, const char *prefix, mk_str text)
{
    struct mk_buf line = mk_buf_growing(4 * IN_MAX);
    shell_safe_add(&line, text);
    mk_buf_add_char(&line, '\n');
    if (to == stderr)
        fflush(stdout); /* so that both come in their order */
    fputs(prefix, to);
    bool ok = !line.failed && fwrite(line.p, 1, line.len, to) == line.len;
    mk_buf_free(&line);
    return ok;
}

static int complain(const struct shell_line *l, const char *fmt, ...) MK_API_PRINTF(2, 3);

static int complain(const struct shell_line *l, const char *fmt, ...)
{
    char room[1024];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    (void)print(stderr, l->prefix, mk_buf_str(&text));
    return 1;
}

/* ---- Receiving ---- */

/* Waits for more. False: it is over, errno says why, 0 for the end. */
static bool receive(struct shell_line *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    mk_buf_drop(&l->in, l->in_at);
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

/* A line without its end; valid until the next one is read. False: there is none, see receive(). */
static bool read_line(struct shell_line *l, mk_str *line)
{
    for (;;) {
        mk_str rest = mk_str_skip(mk_buf_str(&l->in), l->in_at);
        size_t len = mk_str_find(rest, '\n');
        if (len != MK_STR_NONE) {
            *line = mk_str_take(rest, len);
            l->in_at += len + 1;
            return true;
        }
        if (!receive(l))
            return false;
    }
}

/* ---- Connecting ---- */

struct user {
    char name[64];
};

static struct user user_of(uid_t uid)
{
    struct user u;
    const struct passwd *found = getpwuid(uid);
    if (found)
        snprintf(u.name, sizeof u.name, "%s", found->pw_name);
    else
        snprintf(u.name, sizeof u.name, "user %u", (unsigned)uid);
    return u;
}

static int complain_of_rights(const struct shell_line *l)
{
    struct stat st;
    struct user you = user_of(geteuid());
    if (stat(l->path, &st) < 0)
        return complain(l, "%s may not look into the folder of %s", you.name, l->path);
    struct user owner = user_of(st.st_uid);
    const struct group *group = getgrgid(st.st_gid);
    if (!(st.st_mode & S_IWGRP) || !group)
        return complain(l, "%s may not use %s: it is for %s alone", you.name, l->path, owner.name);
    return complain(l, "%s may not use %s: it is for %s and the group %s", you.name, l->path, owner.name,
                    group->gr_name);
}

static int complain_of_connect(const struct shell_line *l, int error)
{
    if (error == ENOENT)
        return complain(l,
                        "there is no socket %s: does a server run, with `Load cheetah` in its [PLUGINS]? "
                        "(`monkey shell -s SOCKET` names another one)",
                        l->path);
    if (error == ECONNREFUSED)
        return complain(l, "nobody answers at %s: the server has ended", l->path);
    if (error == EACCES || error == EPERM)
        return complain_of_rights(l);
    if (error == EAGAIN)
        return complain(l, "nobody answers at %s within %d s", l->path, CONNECT_S);
    return complain(l, "cannot connect to %s: %s", l->path, strerror(error));
}

static int connect_once(struct shell_line *l)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = CONNECT_S};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", l->path);
    shell_line_close(l);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return errno;
    (void)setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return connect(l->fd, (const struct sockaddr *)&to, sizeof to) < 0 ? errno : 0;
}

static int take_greeting(struct shell_line *l, mk_str line)
{
    static const mk_str expected = MK_STR_INIT("+" SHELL_GREETING " ");
    if (mk_str_starts(line, MK_STR("-")))
        return complain(l, "%.*s", MK_STR_ARG(mk_str_skip(line, 1)));
    if (mk_str_starts(line, MK_STR("+cheetah ")) && !mk_str_starts(line, expected))
        return complain(l, "the server at %s speaks another version of this: use its own `monkey shell`",
                        l->path);
    if (!mk_str_starts(line, expected))
        return complain(l, "what answers at %s is not the shell of a monkey", l->path);
    line = mk_str_skip(line, expected.len);
    snprintf(l->greeting, sizeof l->greeting, "%.*s", MK_STR_ARG(line));
    return 0;
}

enum { AGAIN = -1 };

static int open_once(struct shell_line *l)
{
    mk_str line;
    int e = connect_once(l);
    if (e)
        return complain_of_connect(l, e);
    if (read_line(l, &line))
        return take_greeting(l, line);
    /* A process that ended while we waited to be let in: there will be another one. */
    if (errno == 0 || errno == ECONNRESET)
        return AGAIN;
    return complain(l, "what answers at %s does not greet us: %s", l->path, strerror(errno));
}

int shell_line_open(struct shell_line *l)
{
    int code = AGAIN;
    for (unsigned i = 0; i < TRIES && code == AGAIN; i++) {
        if (i)
            usleep(PAUSE_US);
        code = open_once(l);
        if (code)
            shell_line_close(l);
    }
    return code == AGAIN ? complain(l, "what answers at %s ends at once", l->path) : code;
}

/* ---- Asking ---- */

void shell_line_look(struct shell_line *l)
{
    char c;
    if (l->fd < 0)
        return;
    bool has_input =
        l->in_at < l->in.len || recv(l->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
    if (has_input) /* it says why it goes, or has gone */
        shell_line_close(l);
}

static bool send_line(const struct shell_line *l, mk_str line)
{
    char room[SHELL_LINE_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
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

enum { ELSEWHERE = -1 };

static int lose(struct shell_line *l)
{
    const char *why =
        errno == 0 || errno == ECONNRESET ? "the process that was asked has ended" : strerror(errno);
    shell_line_close(l);
    return complain(l, "the answer is not complete: %s", why);
}

static int finish(struct shell_line *l, int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    return complain(l, "cannot write: %s", strerror(errno));
}

/* Prints the answer. ELSEWHERE: there is none, it is to be asked for again. */
static int read_answer(struct shell_line *l)
{
    mk_str line;
    while (read_line(l, &line)) {
        mk_str text = mk_str_skip(line, 1);
        switch (line.len ? line.p[0] : 0) {
        case ' ':
            (void)print(stdout, "", text);
            break;
        case '#':
            (void)print(stderr, "", text);
            break;
        case SHELL_DONE:
            if (text.len)
                (void)print(stdout, "", text);
            return finish(l, 0);
        case SHELL_FAILED:
            (void)print(stderr, l->prefix, text);
            return finish(l, 1);
        case SHELL_MISUSED:
            (void)print(stderr, l->prefix, text);
            return finish(l, 2);
        case SHELL_ELSEWHERE:
            return ELSEWHERE;
        default:
            shell_line_close(l);
            return complain(l, "%s does not keep to the protocol", l->path);
        }
    }
    return lose(l);
}

int shell_line_ask(struct shell_line *l, mk_str command)
{
    for (unsigned i = 0; i < TRIES; i++) {
        shell_line_look(l);
        if (l->fd < 0 && shell_line_open(l))
            return 1;
        int code = ELSEWHERE; /* what was not sent whole was not done */
        if (send_line(l, command))
            code = read_answer(l);
        if (code != ELSEWHERE)
            return code;
        shell_line_close(l);
        usleep(PAUSE_US);
    }
    return complain(l, "the server at %s ends", l->path);
}
