/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that a test reads in pieces: chunks and server-sent events. */
#include "stream.h"

#include "clock.h"

#include <monkey/mem.h>
#include <monkey/text.h>
#include <string.h>

enum { PATIENCE_MS = 30000, LINE_MAX_LEN = 64 * 1024 };

struct duda_test_stream {
    struct duda_test *test;
    struct duda_test_stream *next;
    struct tester_conn conn;
    struct duda_test_response head;
    bool is_chunked, has_ended;
    uint64_t left;      /* bytes left of a body without chunks */
    struct mk_buf body; /* received, and not yet given to the test */
};

/* ---- Connections ---- */

/* Moves the bytes that have arrived into `in`. */
static void receive(struct tester_conn *c)
{
    mk_str all = mk_test_client_received(c->client);
    if (all.len > c->taken)
        mk_buf_add(&c->in, mk_str_skip(all, c->taken));
    c->taken = all.len;
}

bool tester_conn_wait(struct tester_conn *c, uint64_t until_ms)
{
    size_t before = c->in.len;
    while (c->in.len == before) {
        uint64_t now = tester_clock_real_ms();
        int open = now < until_ms ? mk_test_client_step(c->client, (uint32_t)(until_ms - now)) : -1;
        receive(c);
        c->is_closed = c->is_closed || (now < until_ms && open != 1);
        if (now >= until_ms || open != 1)
            return c->in.len != before;
    }
    return true;
}

static bool send_head(struct tester_conn *c, struct duda_test *t, const struct duda_test_request *request)
{
    struct mk_buf text = mk_buf_growing(TESTER_BODY_MAX), headers = mk_buf_growing(1 << 20);
    const char *method = request->method ? request->method : request->body.p ? "POST" : "GET";
    tester_write_headers(t, request, &headers);
    mk_buf_addf(&text, "%s %s HTTP/1.1\r\n", method, request->target);
    if (!tester_find_header(mk_buf_str(&headers), MK_STR("Host")).p)
        mk_buf_add(&text, MK_STR("Host: localhost\r\n"));
    mk_buf_add(&text, mk_buf_str(&headers));
    if (request->body.p)
        mk_buf_addf(&text, "Content-Length: %zu\r\n", request->body.len);
    mk_buf_add(&text, MK_STR("\r\n"));
    mk_buf_add(&text, request->body);
    c->client = mk_test_client_open(tester_server());
    bool ok = c->client && mk_test_client_send(c->client, mk_buf_str(&text)) == 0;
    mk_buf_free(&text);
    mk_buf_free(&headers);
    return ok;
}

/* Parses the head if it is complete, and removes it from the received bytes. */
static bool parse_head(struct tester_conn *c, struct duda_test *t, struct duda_test_response *head)
{
    static const mk_str end = MK_STR_INIT("\r\n\r\n");
    mk_str in = mk_buf_str(&c->in);
    const char *at = in.len ? memmem(in.p, in.len, end.p, end.len) : NULL;
    uint64_t status = 0;
    if (!at)
        return false;
    mk_str lines = mk_str_first(in, (size_t)(at - in.p) + 2), first = mk_str_cut(&lines, '\n');
    (void)mk_num_parse(mk_str_first(mk_str_skip(first, sizeof "HTTP/1.1 " - 1), 3), &status);
    head->status = (unsigned)status;
    head->headers = tester_keep(t, lines.p ? lines : MK_STR(""));
    head->body = MK_STR("");
    mk_buf_consume(&c->in, (size_t)(at - in.p) + end.len);
    return true;
}

bool tester_conn_open(struct tester_conn *c, struct duda_test *t, const struct duda_test_request *request,
                      struct duda_test_response *head)
{
    const char *method = request->method ? request->method : "GET";
    uint64_t until = tester_clock_real_ms() + PATIENCE_MS;
    *c = (struct tester_conn){.in = mk_buf_growing(TESTER_BODY_MAX)};
    tester_reason_begin(method, request->target);
    bool ok = send_head(c, t, request), done = false;
    while (ok && !(done = parse_head(c, t, head)) && tester_conn_wait(c, until))
        continue;
    head->method = tester_keep(t, mk_str_from_c(method));
    head->target = tester_keep(t, mk_str_from_c(request->target));
    tester_reason_end(t, head);
    if (!done)
        tester_fail_request(t, method, request->target, "no response");
    else
        tester_store_cookies(t, head->headers, request->target);
    return done;
}

void tester_conn_close(struct tester_conn *c)
{
    mk_test_client_close(c->client);
    c->client = NULL;
    mk_buf_free(&c->in);
}

/* ---- The body ---- */

/* Moves a complete chunk into the body. Returns false if none has arrived. */
static bool read_chunk(struct duda_test_stream *s)
{
    mk_str in = mk_buf_str(&s->conn.in);
    size_t eol = mk_str_find(in, '\n'), size = 0, i = 0;
    if (eol == MK_STR_NONE)
        return false;
    for (; i < eol && size <= TESTER_BODY_MAX && mk_char_hex(in.p[i]) >= 0; i++)
        size = size * 16 + (size_t)mk_char_hex(in.p[i]);
    if (i == 0 || size > TESTER_BODY_MAX || in.len < eol + 1 + size + 2)
        return false;
    s->has_ended = size == 0;
    mk_buf_add(&s->body, mk_str_first(mk_str_skip(in, eol + 1), size));
    mk_buf_consume(&s->conn.in, eol + 1 + size + 2);
    return true;
}

static bool read_plain(struct duda_test_stream *s)
{
    size_t n = s->conn.in.len < s->left ? s->conn.in.len : (size_t)s->left;
    mk_buf_add(&s->body, mk_str_first(mk_buf_str(&s->conn.in), n));
    mk_buf_consume(&s->conn.in, n);
    s->left -= n;
    s->has_ended = s->left == 0;
    return n > 0;
}

/* Waits for more of the body. Returns false at its end, or at the real time `until`. */
static bool read_body(struct duda_test_stream *s, uint64_t until)
{
    for (;;) {
        if (s->has_ended)
            return false;
        if (s->is_chunked ? read_chunk(s) : read_plain(s))
            return s->body.len > 0;
        if (s->conn.is_closed || !tester_conn_wait(&s->conn, until)) {
            s->has_ended = s->has_ended || s->conn.is_closed;
            return false;
        }
    }
}

/* ---- The functions of duda/test.h ---- */

struct duda_test_stream *duda_test_stream_open(struct duda_test *t, const struct duda_test_request *request)
{
    struct duda_test_stream *s = mk_mem_zalloc(1, sizeof *s);
    uint64_t length = UINT64_MAX;
    if (!s)
        return NULL;
    s->test = t;
    s->body = mk_buf_growing(TESTER_BODY_MAX);
    s->next = t->streams;
    t->streams = s;
    if (!tester_conn_open(&s->conn, t, request, &s->head))
        s->has_ended = true;
    s->is_chunked =
        mk_str_eq_nocase(tester_find_header(s->head.headers, MK_STR("Transfer-Encoding")), MK_STR("chunked"));
    (void)mk_num_parse(tester_find_header(s->head.headers, MK_STR("Content-Length")), &length);
    s->left = length;
    return s;
}

struct duda_test_response duda_test_stream_response(const struct duda_test_stream *s)
{
    return s ? s->head : (struct duda_test_response){.headers = MK_STR(""), .body = MK_STR("")};
}

bool duda_test_stream_read(struct duda_test_stream *s, uint32_t timeout_ms, mk_str *data)
{
    *data = MK_STR_NULL;
    if (!s || (s->body.len == 0 && !read_body(s, tester_clock_real_ms() + timeout_ms)))
        return false;
    *data = tester_keep(s->test, mk_buf_str(&s->body));
    mk_buf_clear(&s->body);
    return true;
}

/* Returns the length of the first event, with its empty line; 0: it is not complete. */
static size_t event_len(mk_str body)
{
    const char *at = body.len ? memmem(body.p, body.len, "\n\n", 2) : NULL;
    return at ? (size_t)(at - body.p) + 2 : 0;
}

static void parse_event(struct duda_test *t, mk_str text, struct duda_test_event *event)
{
    struct mk_buf data = mk_buf_growing(TESTER_BODY_MAX);
    *event = (struct duda_test_event){.name = MK_STR("message"), .id = MK_STR_NULL};
    while (text.len) {
        mk_str value = mk_str_cut(&text, '\n'), field = mk_str_cut(&value, ':');
        if (mk_str_starts(value, MK_STR(" ")))
            value = mk_str_skip(value, 1);
        if (mk_str_eq(field, MK_STR("event")))
            event->name = tester_keep(t, value);
        else if (mk_str_eq(field, MK_STR("id")))
            event->id = tester_keep(t, value);
        else if (mk_str_eq(field, MK_STR("data")))
            mk_buf_addf(&data, "%s%.*s", event->data.p ? "\n" : "", MK_STR_ARG(value));
        if (mk_str_eq(field, MK_STR("data")))
            event->data = MK_STR("");
    }
    if (event->data.p)
        event->data = tester_keep(t, data.p ? mk_buf_str(&data) : MK_STR(""));
    mk_buf_free(&data);
}

bool duda_test_stream_event(struct duda_test_stream *s, uint32_t timeout_ms, struct duda_test_event *event)
{
    uint64_t until = tester_clock_real_ms() + timeout_ms;
    *event = (struct duda_test_event){.name = MK_STR_NULL};
    while (s) {
        size_t n = event_len(mk_buf_str(&s->body));
        if (!n && !read_body(s, until))
            return false;
        if (!n)
            continue;
        parse_event(s->test, mk_str_first(mk_buf_str(&s->body), n), event);
        mk_buf_consume(&s->body, n);
        if (event->data.p) /* otherwise a comment, or only a field such as retry */
            return true;
    }
    return false;
}

bool duda_test_stream_ended(struct duda_test_stream *s, uint32_t timeout_ms)
{
    uint64_t until = tester_clock_real_ms() + timeout_ms;
    while (s && !s->has_ended && (read_body(s, until) || tester_clock_real_ms() < until))
        continue;
    return !s || s->has_ended;
}

void duda_test_stream_close(struct duda_test_stream *s)
{
    if (!s)
        return;
    tester_conn_close(&s->conn);
    s->has_ended = true;
}

void tester_streams_close(struct duda_test *t)
{
    while (t->streams) {
        struct duda_test_stream *s = t->streams;
        t->streams = s->next;
        tester_conn_close(&s->conn);
        mk_buf_free(&s->body);
        mk_mem_free(s);
    }
}
