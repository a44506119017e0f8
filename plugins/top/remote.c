/* SPDX-License-Identifier: Apache-2.0 */
#include "remote.h"

#include <errno.h>
#include <monkey/text.h>
#include <monkey/utf8.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ = 65536, TIMEOUT_S = 30, PAUSE_US = 100000 };

enum result { OK, FAILED, AGAIN };

static enum result report_error(char *error, const char *path, const char *what)
{
    snprintf(error, TOP_REMOTE_ERROR_MAX, "%s: %s", path, what);
    return FAILED;
}

/* ---- The connection ---- */

static enum result report_connect_error(char *error, const char *path)
{
    if (errno == ENOENT)
        return report_error(
            error, path, "there is no such socket: is a server running with `Load cheetah` and `Load top`?");
    if (errno == ECONNREFUSED)
        return report_error(error, path, "no server listens there: the server has exited");
    return report_error(error, path, strerror(errno));
}

static bool send_request(int fd, mk_str target)
{
    char buf[TOP_REMOTE_TARGET_MAX + 100];
    struct mk_buf request = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&request, "GET %.*s HTTP/1.1\r\nHost: monkey\r\nConnection: close\r\n\r\n",
                MK_STR_ARG(target));
    mk_str rest = mk_buf_str(&request);
    while (rest.len) {
        ssize_t n = send(fd, rest.p, rest.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        rest = mk_str_skip(rest, n > 0 ? (size_t)n : 0);
    }
    return true;
}

/* Receives until the server closes the connection. */
static bool receive_response(int fd, struct mk_buf *in)
{
    for (;;) {
        if (!mk_buf_reserve(in, READ)) {
            errno = EMSGSIZE;
            return false;
        }
        ssize_t n = recv(fd, in->p + in->len, READ, 0);
        if (n == 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        in->len += n > 0 ? (size_t)n : 0;
    }
}

/* A server may refuse a connection before it reads the request. */
static enum result exchange(const char *path, mk_str target, struct mk_buf *in, char *error)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    if (strlen(path) >= sizeof to.sun_path)
        return report_error(error, path, "the path is too long");
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return report_error(error, path, strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    enum result result = OK;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        result = report_connect_error(error, path);
    } else {
        (void)send_request(fd, target);
        bool is_whole = receive_response(fd, in);
        if (!is_whole && (!in->len || errno != ECONNRESET)) {
            result = errno == ECONNRESET ? AGAIN : FAILED;
            (void)report_error(error, path,
                               errno == EAGAIN     ? "the server does not respond"
                               : errno == EMSGSIZE ? "the response is too large"
                                                   : strerror(errno));
        }
    }
    close(fd);
    return result;
}

/* ---- The response ---- */

/* The server is not trusted with the terminal: control characters, those of Unicode included, and bytes that are not
 * UTF-8 are replaced. */
static void append_printable(struct mk_buf *out, mk_str text)
{
    while (text.len) {
        uint32_t c;
        size_t len = mk_utf8_decode(text, &c);
        bool is_control = (c < ' ' && c != '\n') || (c >= 0x7f && c < 0xa0);
        mk_str character = mk_str_first(text, len ? len : 1);
        mk_buf_add(out, len && !is_control ? character : MK_STR("?"));
        text = mk_str_skip(text, character.len);
    }
}

static bool find_header(mk_str head, mk_str name, mk_str *value)
{
    while (head.len) {
        mk_str line = mk_str_cut(&head, '\n');
        *value = mk_str_cut(&line, '\r');
        mk_str found = mk_str_cut(value, ':');
        if (mk_str_eq_nocase(found, name))
            return true;
    }
    return false;
}

/* The content of an error is {"error":"TEXT"}, or plain text if the server has refused the connection. */
static void report_refusal(const char *path, mk_str content, char *error)
{
    char buf[TOP_REMOTE_ERROR_MAX - 128];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf - 1);
    static const mk_str begin = MK_STR_INIT("{\"error\":\"");
    if (mk_str_starts(content, begin)) {
        content = mk_str_skip(content, begin.len);
        content = mk_str_first(content, mk_str_find(content, '"') < content.len ? mk_str_find(content, '"')
                                                                                : content.len);
    }
    append_printable(&text, mk_str_first(mk_str_trim(mk_str_cut(&content, '\n')), sizeof buf - 1));
    buf[text.len] = '\0';
    (void)report_error(error, path, buf);
}

static enum result parse_response(const char *path, mk_str in, struct mk_buf *out, char *error)
{
    static const mk_str end = MK_STR_INIT("\r\n\r\n");
    uint64_t length;
    mk_str value, content;
    size_t at = 0;
    if (!in.len)
        return report_error(error, path, "the server has closed the connection"), AGAIN;
    while (at < in.len && !mk_str_starts(mk_str_skip(in, at), end))
        at++;
    content = mk_str_skip(in, at < in.len ? at + end.len : at);
    if (!mk_str_starts(in, MK_STR("HTTP/1.1 ")) || at == in.len)
        return report_error(error, path, "this is not the control socket of a Monkey server");
    if (!find_header(mk_str_first(in, at), MK_STR("Content-Length"), &value) ||
        !mk_num_parse(mk_str_trim(value), &length) || length != content.len)
        return report_error(error, path, "the response is incomplete"), AGAIN;
    if (!mk_str_starts(in, MK_STR("HTTP/1.1 200 "))) {
        report_refusal(path, content, error);
        return mk_str_starts(in, MK_STR("HTTP/1.1 503 ")) ? AGAIN : FAILED;
    }
    append_printable(out, content);
    return out->failed ? report_error(error, path, "out of memory") : OK;
}

bool top_remote_get(const char *socket_path, const struct mk_buf *target, unsigned tries, struct mk_buf *out,
                    char *error)
{
    enum result result =
        target->failed ? report_error(error, socket_path, "the options are too long") : AGAIN;
    for (unsigned i = 0; i < tries && result == AGAIN; i++) {
        struct mk_buf in = mk_buf_growing(TOP_REMOTE_CONTENT_MAX);
        if (i)
            usleep(PAUSE_US);
        mk_buf_clear(out);
        result = exchange(socket_path, mk_buf_str(target), &in, error);
        if (result == OK)
            result = parse_response(socket_path, mk_buf_str(&in), out, error);
        mk_buf_free(&in);
    }
    return result == OK;
}

bool top_remote_print(const char *command, mk_str text)
{
    if (fwrite(text.p, 1, text.len, stdout) == text.len && fflush(stdout) == 0)
        return true;
    fprintf(stderr, "monkey %s: cannot write: %s\n", command, strerror(errno));
    return false;
}
