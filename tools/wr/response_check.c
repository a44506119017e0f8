/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/response_check.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "http/response_parser.h"
#include "load/url.h"
#include "os/fd.h"
#include "wr/child.h"
#include "wr/message.h"

enum { DEADLINE_S = 30, FIELDS_MAX = 64 };

static int connect_to_url(const struct load_url *url, const char **why)
{
    struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX];
    struct timeval limit = {.tv_sec = DEADLINE_S};
    size_t n = load_url_resolve(url, at, why);
    int fd = -1;
    for (size_t i = 0; i < n && fd < 0; i++) {
        fd = socket(at[i].any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
            connect(fd, &at[i].any, at[i].len) < 0) {
            *why = mk_err_text(errno == EINPROGRESS ? -ETIMEDOUT : mk_err_last());
            mk_fd_close(&fd);
        }
    }
    return fd;
}

/* MSG_NOSIGNAL: a connection closed by the server must not kill wr. */
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

static mk_err send_request(int fd, const struct load_url *url, char *const *fields)
{
    struct mk_buf text = mk_buf_growing(1 << 20);
    load_url_write_request(&text, url, "wr/" MK_VERSION, fields, true);
    mk_err e = text.failed ? -ENOMEM : send_all(fd, mk_buf_str(&text));
    mk_buf_free(&text);
    return e;
}

static enum mk_response_parser_event parse_response_bytes(struct mk_response_parser *r, struct mk_sha1 *sum,
                                                          mk_str in)
{
    enum mk_response_parser_event step;
    mk_str data;
    do {
        step = mk_response_parser_next(r, &in, &data);
        if (step == MK_RESPONSE_PARSER_DATA)
            mk_sha1_update(sum, data);
    } while (step == MK_RESPONSE_PARSER_DATA || step == MK_RESPONSE_PARSER_HEAD ||
             step == MK_RESPONSE_PARSER_TRAILERS);
    return step;
}

/* Returns NULL, or why there is no complete response. */
static const char *receive_response(int fd, struct mk_response_parser *r, struct mk_sha1 *sum)
{
    static char buf[1 << 16];
    enum mk_response_parser_event step = MK_RESPONSE_PARSER_MORE;
    uint64_t until = mk_clock_us() + (uint64_t)DEADLINE_S * 1000000;
    while (step == MK_RESPONSE_PARSER_MORE) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = mk_clock_us();
        int ready = now < until ? poll(&p, 1, (int)((until - now) / 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return "it does not arrive, or is incomplete, within half a minute";
        ssize_t n = read(fd, buf, sizeof buf);
        step = n > 0 ? parse_response_bytes(r, sum, mk_str_of(buf, (size_t)n)) : mk_response_parser_eof(r);
    }
    return r->problem;
}

static bool fetch_over_http(const struct load_url *url, char *const *fields, struct wr_check_result *out)
{
    const char *why;
    struct mk_response_parser r;
    struct mk_sha1 sum;
    int fd = connect_to_url(url, &why);
    if (fd < 0)
        return wr_message_error("cannot connect to %.*s: %s; is the server running?", MK_STR_ARG(url->whole),
                                why);
    mk_response_parser_init(&r, (struct mk_response_parser_options){0}, NULL, 0);
    mk_sha1_init(&sum);
    mk_err e = send_request(fd, url, fields);
    why = e ? mk_err_text(e) : receive_response(fd, &r, &sum);
    mk_fd_close(&fd);
    *out = (struct wr_check_result){.status = r.head.status, .length = r.length};
    mk_sha1_final(&sum, out->sha1);
    mk_response_parser_fini(&r);
    return !why || wr_message_error("cannot check the response to GET %.*s: %s; --unchecked skips the check",
                                    MK_STR_ARG(url->whole), why);
}

struct body {
    struct mk_sha1 sum;
    uint64_t length;
};

static void hash_curl_output(void *data, mk_str piece)
{
    struct body *b = data;
    mk_sha1_update(&b->sum, piece);
    b->length += piece.len;
}

static bool run_curl_child(struct wr_child *curl, char **argv, mk_str url)
{
    mk_err e = wr_child_start(curl, argv);
    if (e)
        return wr_message_error(
            e == -ENOENT ? "cannot check %.*s: `curl` is not installed (%s); install it, or go on with "
                           "--unchecked"
                         : "cannot check %.*s: curl does not start: %s",
            MK_STR_ARG(url), mk_err_text(e));
    enum wr_child_event event = wr_child_wait(curl, mk_clock_us() + (uint64_t)(DEADLINE_S + 5) * 1000000);
    if (event != WR_CHILD_ENDED)
        return wr_message_error("checking %.*s with curl was %s", MK_STR_ARG(url),
                                event == WR_CHILD_INTERRUPTED ? "interrupted"
                                                              : "stopped after half a minute");
    wr_child_drain(curl);
    return true;
}

/* Fetches the URL with curl, which writes the body to standard output, and the status after its messages to
 * standard error. */
static bool fetch_with_curl(const struct load_url *url, char *const *fields, struct wr_check_result *out)
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
        return wr_message_error("the URL is too long to check: see --unchecked");
    argv[n] = whole;
    struct body body = {.length = 0};
    mk_sha1_init(&body.sum);
    struct wr_child curl = {.on_output = hash_curl_output, .data = &body};
    if (!run_curl_child(&curl, argv, url->whole)) {
        wr_child_fini(&curl);
        return false;
    }
    uint64_t status = 0;
    mk_str messages = mk_buf_str(&curl.outputs[1]);
    size_t last = mk_str_find_last(messages, '\n');
    bool good = WIFEXITED(curl.status) && WEXITSTATUS(curl.status) == 0 && last != MK_STR_NONE &&
                mk_num_parse(mk_str_skip(messages, last + 1), &status);
    if (!good)
        wr_message("cannot check the response to GET %.*s: %.*s; --unchecked skips the check",
                   MK_STR_ARG(url->whole), MK_STR_ARG(mk_str_first(messages, mk_str_find(messages, '\n'))));
    wr_child_fini(&curl);
    *out = (struct wr_check_result){.status = (unsigned)status, .length = body.length};
    mk_sha1_final(&body.sum, out->sha1);
    return good;
}

static void write_hex(const unsigned char sha1[MK_SHA1_LEN], char out[2 * MK_SHA1_LEN + 1])
{
    struct mk_buf text = mk_buf_fixed(out, 2 * MK_SHA1_LEN);
    mk_hex_encode(&text, mk_str_of((const char *)sha1, MK_SHA1_LEN));
    out[2 * MK_SHA1_LEN] = '\0';
}

bool wr_response_check_compare(const struct wr_check_result *got, const struct load_expected *expected,
                               mk_str url)
{
    enum { OK = 200 };
    unsigned status = expected->status ? expected->status : OK;
    if (got->status != status)
        return wr_message_error("wrong response: GET %.*s has status %u, not %u%s", MK_STR_ARG(url),
                                got->status, status,
                                expected->status ? "" : "; if you expect it, use --status");
    if (expected->has_length && got->length != expected->length)
        return wr_message_error("wrong response: GET %.*s has %llu bytes, not %llu", MK_STR_ARG(url),
                                (unsigned long long)got->length, (unsigned long long)expected->length);
    if (expected->has_sha1 && memcmp(got->sha1, expected->sha1, MK_SHA1_LEN) != 0) {
        char is[2 * MK_SHA1_LEN + 1], should[2 * MK_SHA1_LEN + 1];
        write_hex(got->sha1, is);
        write_hex(expected->sha1, should);
        return wr_message_error("wrong response: the content of GET %.*s has the SHA-1 %s, not %s",
                                MK_STR_ARG(url), is, should);
    }
    return true;
}

bool wr_response_check_run(const struct load_url *url, char *const *fields,
                           const struct load_expected *expected, struct wr_check_result *out)
{
    return (url->tls ? fetch_with_curl(url, fields, out) : fetch_over_http(url, fields, out)) &&
           wr_response_check_compare(out, expected, url->whole);
}
