/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/check.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "base/mem.h"
#include "os/fd.h"
#include "wr/child.h"
#include "wr/say.h"

enum { DEADLINE_S = 30, FIELDS_MAX = 64 };

static int connect_to(const struct wr_url *url, mk_err *why)
{
    char host[256], port[8] = "";
    struct mk_buf text = mk_buf_fixed(host, sizeof host);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all;
    struct mk_buf number = mk_buf_fixed(port, sizeof port - 1);
    mk_buf_add(&text, url->host);
    mk_buf_add_char(&text, '\0');
    mk_buf_add_num(&number, url->port);
    *why = -EADDRNOTAVAIL;
    if (text.failed || getaddrinfo(host, port, &hints, &all) != 0)
        return -1;
    int fd = -1;
    for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
        struct timeval limit = {.tv_sec = DEADLINE_S};
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
            connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            *why = errno == EINPROGRESS ? -ETIMEDOUT : mk_err_last();
            mk_fd_close(&fd);
        }
    }
    freeaddrinfo(all);
    return fd;
}

static bool has_field(char *const *fields, mk_str name)
{
    for (size_t i = 0; fields[i]; i++) {
        mk_str field = mk_str_from_c(fields[i]);
        if (mk_str_eq_nocase(mk_str_trim(mk_str_take(field, mk_str_find(field, ':'))), name))
            return true;
    }
    return false;
}

/* A server that hangs up is no reason to end by a signal. */
static mk_err send_all(int fd, mk_str text)
{
    while (text.len) {
        ssize_t n = send(fd, text.p, text.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mk_err_last();
        text = mk_str_skip(text, (size_t)n);
    }
    return 0;
}

static mk_err send_request(int fd, const struct wr_url *url, char *const *fields)
{
    struct mk_buf text = mk_buf_growing(1 << 20);
    mk_buf_addf(&text, "GET %.*s HTTP/1.1\r\n", MK_STR_ARG(url->target));
    if (!has_field(fields, MK_STR("Host")))
        mk_buf_addf(&text, "Host: %.*s\r\n", MK_STR_ARG(url->authority));
    if (!has_field(fields, MK_STR("User-Agent")))
        mk_buf_addf(&text, "User-Agent: wr/%s\r\n", MK_VERSION);
    for (size_t i = 0; fields[i]; i++)
        if (!mk_str_starts(mk_str_from_c(fields[i]), MK_STR("Connection:")))
            mk_buf_addf(&text, "%s\r\n", fields[i]);
    mk_buf_addf(&text, "Connection: close\r\n\r\n");
    mk_err e = text.failed ? -ENOMEM : send_all(fd, mk_buf_str(&text));
    mk_buf_free(&text);
    return e;
}

static void read_answer(int fd, struct wr_answer *a)
{
    static char room[1 << 16];
    uint64_t until = mk_clock_us() + (uint64_t)DEADLINE_S * 1000000, now;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        now = mk_clock_us();
        if (now >= until || poll(&p, 1, (int)((until - now) / 1000) + 1) <= 0) {
            a->at = WR_ANSWER_BROKEN;
            a->why = "it does not come, or not whole, within half a minute";
            return;
        }
        ssize_t n = read(fd, room, sizeof room);
        if (n <= 0) {
            wr_answer_end(a);
            return;
        }
        if (!wr_answer_feed(a, mk_str_of(room, (size_t)n)))
            return;
    }
}

static bool fetch_plain(const struct wr_url *url, char *const *fields, struct wr_checked *out)
{
    mk_err e;
    struct wr_answer *a = mk_mem_alloc(sizeof *a);
    int fd = a ? connect_to(url, &e) : -1;
    if (fd < 0) {
        mk_mem_free(a);
        return wr_say_error("cannot connect to %.*s: %s; does the server run?", MK_STR_ARG(url->whole),
                            a ? mk_err_text(e) : "out of memory");
    }
    wr_answer_init(a);
    e = send_request(fd, url, fields);
    if (!e)
        read_answer(fd, a);
    mk_fd_close(&fd);
    bool good = !e && a->at == WR_ANSWER_DONE;
    if (!good)
        wr_say("the answer to GET %.*s cannot be checked: %s; --unchecked goes on without",
               MK_STR_ARG(url->whole), e ? mk_err_text(e) : a->why);
    *out = (struct wr_checked){.status = a->status, .length = a->length};
    memcpy(out->sha1, a->sha1, sizeof out->sha1);
    mk_mem_free(a);
    return good;
}

struct body {
    struct mk_sha1 sum;
    uint64_t length;
};

static void on_body(void *data, mk_str piece)
{
    struct body *b = data;
    mk_sha1_add(&b->sum, piece);
    b->length += piece.len;
}

static bool run_curl(struct wr_child *curl, char **argv, mk_str url)
{
    mk_err e = wr_child_start(curl, argv);
    if (e)
        return wr_say_error(
            e == -ENOENT ? "cannot check %.*s: `curl` is not installed (%s); install it, or go on with "
                           "--unchecked"
                         : "cannot check %.*s: curl does not start: %s",
            MK_STR_ARG(url), mk_err_text(e));
    enum wr_child_news news = wr_child_wait(curl, mk_clock_us() + (uint64_t)(DEADLINE_S + 5) * 1000000);
    if (news != WR_CHILD_ENDED)
        return wr_say_error("checking %.*s with curl was %s", MK_STR_ARG(url),
                            news == WR_CHILD_INTERRUPTED ? "interrupted" : "given up after half a minute");
    wr_child_drain(curl);
    return true;
}

/* It writes the content to its standard output and the status behind its messages. */
static bool fetch_with_curl(const struct wr_url *url, char *const *fields, struct wr_checked *out)
{
    static char words[][32] = {"curl", "-sSk", "--max-time", "30", "-o", "-", "-w", "%{stderr}\n%{http_code}",
                               "-H"};
    enum { FIXED = 8, FIELD = 8 };
    char *argv[FIXED + 2 * FIELDS_MAX + 2] = {NULL};
    size_t n = 0;
    for (; n < FIXED; n++)
        argv[n] = words[n];
    for (size_t i = 0; fields[i] && i < FIELDS_MAX; i++) {
        argv[n++] = words[FIELD];
        argv[n++] = fields[i];
    }
    char whole[4096];
    struct mk_buf text = mk_buf_fixed(whole, sizeof whole);
    mk_buf_add(&text, url->whole);
    mk_buf_add_char(&text, '\0');
    if (text.failed)
        return wr_say_error("the URL is too long to be checked: see --unchecked");
    argv[n] = whole;
    struct body body = {.length = 0};
    mk_sha1_init(&body.sum);
    struct wr_child curl = {.on_output = on_body, .data = &body};
    if (!run_curl(&curl, argv, url->whole)) {
        wr_child_fini(&curl);
        return false;
    }
    uint64_t status = 0;
    mk_str said = mk_buf_str(&curl.outputs[1]);
    size_t last = mk_str_find_last(said, '\n');
    bool good = WIFEXITED(curl.status) && WEXITSTATUS(curl.status) == 0 && last != MK_STR_NONE &&
                mk_num_parse(mk_str_skip(said, last + 1), &status);
    if (!good)
        wr_say("the answer to GET %.*s cannot be checked: %.*s; --unchecked goes on without",
               MK_STR_ARG(url->whole), MK_STR_ARG(mk_str_take(said, mk_str_find(said, '\n'))));
    wr_child_fini(&curl);
    *out = (struct wr_checked){.status = (unsigned)status, .length = body.length};
    mk_sha1_end(&body.sum, out->sha1);
    return good;
}

static void write_hex(const unsigned char sha1[MK_SHA1_LEN], char out[2 * MK_SHA1_LEN + 1])
{
    struct mk_buf text = mk_buf_fixed(out, 2 * MK_SHA1_LEN);
    mk_hex_encode(&text, mk_str_of((const char *)sha1, MK_SHA1_LEN));
    out[2 * MK_SHA1_LEN] = '\0';
}

bool wr_check_matches(const struct wr_checked *got, const struct wr_expected *expected, mk_str url)
{
    enum { OK = 200 };
    unsigned status = expected->status ? expected->status : OK;
    if (got->status != status)
        return wr_say_error("wrong answer: GET %.*s has status %u, not %u%s", MK_STR_ARG(url), got->status,
                            status, expected->status ? "" : "; if that is meant, say --status");
    if (expected->has_length && got->length != expected->length)
        return wr_say_error("wrong answer: GET %.*s has %llu bytes, not %llu", MK_STR_ARG(url),
                            (unsigned long long)got->length, (unsigned long long)expected->length);
    if (expected->has_sha1 && memcmp(got->sha1, expected->sha1, MK_SHA1_LEN) != 0) {
        char is[2 * MK_SHA1_LEN + 1], should[2 * MK_SHA1_LEN + 1];
        write_hex(got->sha1, is);
        write_hex(expected->sha1, should);
        return wr_say_error("wrong answer: the content of GET %.*s has the SHA-1 %s, not %s", MK_STR_ARG(url),
                            is, should);
    }
    return true;
}

bool wr_check(const struct wr_url *url, char *const *fields, const struct wr_expected *expected,
              struct wr_checked *out)
{
    return (url->tls ? fetch_with_curl(url, fields, out) : fetch_plain(url, fields, out)) &&
           wr_check_matches(out, expected, url->whole);
}

bool wr_check_parse_sha1(mk_str text, unsigned char out[MK_SHA1_LEN])
{
    if (text.len != (size_t)2 * MK_SHA1_LEN)
        return false;
    for (size_t i = 0; i < MK_SHA1_LEN; i++) {
        int high = mk_char_hex(text.p[2 * i]), low = mk_char_hex(text.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}
