/* SPDX-License-Identifier: Apache-2.0 */
#include "tester.h"

#include <duda/test.h>
#include <errno.h>
#include <monkey/buf.h>
#include <monkey/mem.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { TESTS_MAX = 1024, REPLIES_MAX = 1024, REPLY_MAX = 64 * 1024 * 1024, PATIENCE_S = 30, SHOWN = 200 };

struct duda_test {
    const char *name, *socket;
    bool failed;
    struct mk_buf replies[REPLIES_MAX]; /* kept until the end of the test */
    size_t n;
};

static struct {
    const char *name;
    void (*fn)(struct duda_test *t);
} tests[TESTS_MAX];
static size_t n_tests;

void duda_test_add(const char *name, void (*fn)(struct duda_test *t))
{
    if (n_tests == TESTS_MAX)
        return;
    tests[n_tests].name = name;
    tests[n_tests++].fn = fn;
}

size_t dev_tester_count(void)
{
    return n_tests;
}

/* ---- Expecting ---- */

static bool fail(struct duda_test *t, const char *file, int line)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    t->failed = true;
    printf("  %s:%d: ", file ? slash ? slash + 1 : file : t->name, line);
    return false;
}

bool duda_test_expect(struct duda_test *t, bool is_true, const char *what, const char *file, int line)
{
    if (is_true)
        return true;
    fail(t, file, line);
    printf("%s is not true\n", what);
    return false;
}

bool duda_test_expect_text(struct duda_test *t, mk_str got, const char *wanted, const char *file, int line)
{
    if (mk_str_eq(got, mk_str_from_c(wanted)))
        return true;
    fail(t, file, line);
    printf("expected \"%.*s\", got \"%.*s\"\n", SHOWN, wanted, MK_STR_ARG(mk_str_first(got, SHOWN)));
    return false;
}

/* ---- Asking ---- */

static int dial(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool send_request(int fd, const struct duda_ask *ask)
{
    struct mk_buf text = mk_buf_growing(REPLY_MAX);
    const char *method = ask->method ? ask->method : ask->body.p ? "POST" : "GET";
    mk_buf_addf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, ask->target,
                ask->fields ? ask->fields : "");
    if (ask->body.p)
        mk_buf_addf(&text, "Content-Length: %zu\r\n", ask->body.len);
    mk_buf_add(&text, MK_STR("\r\n"));
    mk_buf_add(&text, ask->body);
    ssize_t n = 0;
    size_t at = 0;
    while (!text.failed && at < text.len && (n = send(fd, text.p + at, text.len - at, MSG_NOSIGNAL)) > 0)
        at += (size_t)n;
    bool ok = !text.failed && at == text.len;
    mk_buf_free(&text);
    return ok;
}

static bool read_reply(int fd, struct mk_buf *out)
{
    char room[16 * 1024];
    ssize_t n;
    while ((n = recv(fd, room, sizeof room, 0)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            mk_buf_add(out, mk_str_of(room, (size_t)n));
    return n == 0 && !out->failed;
}

mk_str duda_reply_field(const struct duda_reply *reply, const char *name)
{
    mk_str rest = reply->head;
    while (rest.p) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (mk_str_ends(line, MK_STR("\r")))
            line = mk_str_first(line, line.len - 1);
        size_t colon = mk_str_find(line, ':');
        if (colon != MK_STR_NONE && mk_str_eq_nocase(mk_str_first(line, colon), mk_str_from_c(name)))
            return mk_str_trim(mk_str_skip(line, colon + 1));
    }
    return MK_ABSENT;
}

static bool read_hex(mk_str s, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.len && mk_char_hex(s.p[i]) >= 0; i++) {
        if (*out > REPLY_MAX)
            return false;
        *out = *out * 16 + (size_t)mk_char_hex(s.p[i]);
    }
    return s.len > 0 && mk_char_hex(s.p[0]) >= 0;
}

/* The chunks become one piece, in their place: what is read is always behind what is written. */
static bool join_chunks(struct mk_buf *b, size_t from)
{
    size_t to = from, at = from, len;
    for (;;) {
        mk_str rest = mk_str_skip(mk_buf_str(b), at);
        size_t end = mk_str_find(rest, '\n');
        if (end == MK_STR_NONE || !read_hex(rest, &len))
            return false;
        at += end + 1;
        if (len == 0)
            break;
        if (len > b->len - at)
            return false;
        memmove(b->p + to, b->p + at, len);
        to += len;
        at += len + 2;
        if (at > b->len)
            return false;
    }
    b->len = to;
    return true;
}

/* False: it is no response, or not a whole one. */
static bool parse(struct mk_buf *b, struct duda_reply *r)
{
    uint64_t status, length;
    size_t head = 0;
    while (head + 4 <= b->len && memcmp(b->p + head, "\r\n\r\n", 4) != 0)
        head++;
    if (head + 4 > b->len)
        return false;
    r->head = mk_str_of(b->p, head);
    mk_str line = r->head;
    (void)mk_str_cut(&line, ' ');
    if (!mk_num_parse(mk_str_first(line, 3), &status))
        return false;
    if (mk_str_eq_nocase(duda_reply_field(r, "Transfer-Encoding"), MK_STR("chunked")) &&
        !join_chunks(b, head + 4))
        return false;
    r->body = mk_str_of(b->p + head + 4, b->len - head - 4);
    mk_str promised = duda_reply_field(r, "Content-Length");
    r->status = (unsigned)status;
    return !promised.p || !r->body.len || (mk_num_parse(promised, &length) && length == r->body.len);
}

struct duda_reply duda_test_ask(struct duda_test *t, const struct duda_ask *ask)
{
    struct duda_reply reply = {0};
    int fd = t->n < REPLIES_MAX ? dial(t->socket) : -1;
    struct mk_buf *b = &t->replies[t->n < REPLIES_MAX ? t->n++ : 0];
    *b = mk_buf_growing(REPLY_MAX);
    bool ok = fd >= 0 && send_request(fd, ask) && read_reply(fd, b) && parse(b, &reply);
    if (fd >= 0)
        close(fd);
    if (ok)
        return reply;
    fail(t, NULL, 0);
    printf("%s got no whole response\n", ask->target);
    return (struct duda_reply){.head = MK_STR(""), .body = MK_STR("")};
}

struct duda_reply duda_test_get(struct duda_test *t, const char *target)
{
    return duda_test_ask(t, &(struct duda_ask){.target = target});
}

struct duda_reply duda_test_post(struct duda_test *t, const char *target, const char *type, const char *body)
{
    char fields[300];
    snprintf(fields, sizeof fields, "Content-Type: %.250s\r\n", type);
    return duda_test_ask(t,
                         &(struct duda_ask){.target = target, .fields = fields, .body = mk_str_from_c(body)});
}

/* ---- All of them ---- */

static bool run_one(struct duda_test *t, size_t i, const char *socket)
{
    *t = (struct duda_test){.name = tests[i].name, .socket = socket};
    tests[i].fn(t);
    for (size_t k = 0; k < t->n; k++)
        mk_buf_free(&t->replies[k]);
    return !t->failed;
}

size_t dev_tester_run(const char *socket, const char *prefix)
{
    struct duda_test *t = mk_mem_zalloc(1, sizeof *t);
    size_t failed = 0;
    for (size_t i = 0; t && i < n_tests; i++) {
        bool ok = run_one(t, i, socket);
        printf("%s %s.%s\n", ok ? "ok" : "not ok", prefix, tests[i].name);
        fflush(stdout);
        failed += !ok;
    }
    mk_mem_free(t);
    return t ? failed : n_tests;
}
