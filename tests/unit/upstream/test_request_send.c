/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests: the encoded head, and how the body is sent. */
#include <stdio.h>

#include "unit/upstream/request_case.h"
#include "upstream/request_send.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

enum { TURN_MAX = MK_UPSTREAM_REQUEST_SEND_BUDGET, WINDOW = MK_UPSTREAM_REQUEST_SEND_WINDOW };
static char large[3 << 20];

/* ---- Heads ---- */

struct request {
    const char *method, *target;
    struct mk_header fields[4];
    size_t n_fields;
    mk_str lines; /* replaces the default Host */
    int64_t length;
    const char *upgrade;
};

static void start_call(struct call *call, const struct request *r)
{
    fake_init();
    call_init(call);
    fake_add(MK_STR(REPLY), -EAGAIN);
    call->ask.method = mk_str_from_c(r->method ? r->method : "GET");
    call->ask.target = mk_str_from_c(r->target ? r->target : "/");
    call->ask.upgrade = mk_str_from_c(r->upgrade);
    call->ask.length = r->length;
    call->ask.raw_headers = r->lines;
    if (r->n_fields || r->lines.p) {
        call->ask.headers = r->fields;
        call->ask.n_headers = r->n_fields;
    }
    call_start(call);
}

static void expect_head(const struct request *r, const char *text)
{
    struct call call;
    start_call(&call, r);
    assert_str(mk_buf_str(&fake.links[0].out), text);
    assert_int_equal(fake.links[0].n_writes, 1);
    assert_int_equal(call.end, 0);
    assert_int_equal(fake.n_requests, 1);
    call_fini(&call);
}

/* clang-format off */
#define FIELD(name, value) {MK_STR_INIT(name), MK_STR_INIT(value)}
/* clang-format on */
#define EXPECT_HEAD(text, ...) expect_head(&(struct request){__VA_ARGS__}, text)

static void send_writes_request_head(void **state)
{
    (void)state;
    EXPECT_HEAD("GET /a?b HTTP/1.1\r\nHost: x\r\nA: b\r\nEmpty: \r\n\r\n", .target = "/a?b",
                .fields = {FIELD("Host", "x"), FIELD("A", " b "), FIELD("Empty", "")}, .n_fields = 3);
    EXPECT_HEAD("OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n", .method = "OPTIONS", .target = "*");
    EXPECT_HEAD("FROB /%00 HTTP/1.1\r\nhost: \r\n\r\n", .method = "FROB", .target = "/%00",
                .fields = {FIELD("host", "")}, .n_fields = 1);
}

static void send_empty_post_has_content_length_0(void **state)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH"};
    char text[100];
    (void)state;
    for (size_t i = 0; i < MK_LEN(methods); i++) {
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 0\r\n\r\n",
                 methods[i]);
        EXPECT_HEAD(text, .method = methods[i]);
    }
    EXPECT_HEAD("DELETE / HTTP/1.1\r\nHost: example.org\r\n\r\n", .method = "DELETE");
}

static void send_drops_hop_by_hop_headers_of_caller(void **state)
{
    (void)state;
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                .fields = {FIELD("Host", "x"), FIELD("connection", "close, X"), FIELD("Content-Length", "5"),
                           FIELD("Transfer-Encoding", "chunked")},
                .n_fields = 4);
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                .fields = {FIELD("Host", "x"), FIELD("Upgrade", "h2c"), FIELD("Expect", "100-continue"),
                           FIELD("Keep-Alive", "timeout=1")},
                .n_fields = 4);
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                .fields = {FIELD("Host", "x"), FIELD("HTTP2-Settings", "x"),
                           FIELD("Proxy-Connection", "keep-alive"), FIELD("TE", "gzip")},
                .n_fields = 4);
}

#define LINES(text) .lines = MK_STR_INIT(text)

static void send_copies_header_lines_unchanged(void **state)
{
    (void)state;
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: x\r\nA: \xc3\xa4\tb\r\nc: \r\n\r\n",
                LINES("Host: x\r\nA: \xc3\xa4\tb\r\nc: \r\n"));
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: \r\nB: c\r\nConnection: TE\r\nTE: trailers\r\n\r\n",
                LINES("Host: \r\n"), .fields = {FIELD("B", "c"), FIELD("TE", "trailers")}, .n_fields = 2);
    EXPECT_HEAD("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", LINES("Host: x\r\n"),
                .method = "POST");
}

static void send_te_trailers_is_forwarded(void **state)
{
    (void)state;
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: x\r\nConnection: TE\r\nTE: trailers\r\n\r\n",
                .fields = {FIELD("TE", "gzip, Trailers"), FIELD("Host", "x")}, .n_fields = 2);
}

static void send_upgrade_headers_are_added(void **state)
{
    (void)state;
    EXPECT_HEAD("GET / HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                .upgrade = "websocket");
    EXPECT_HEAD(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: a/1\r\nConnection: Upgrade, TE\r\nTE: trailers\r\n\r\n",
        .upgrade = "a/1", .fields = {FIELD("Host", "x"), FIELD("TE", "trailers")}, .n_fields = 2);
}

/* Expects that nothing is sent, no connection is acquired, and the caller is notified. */
static void expect_refusal(const struct request *r, int error)
{
    struct call call;
    start_call(&call, r);
    assert_int_equal(call.head, error);
    assert_int_equal(fake.n_taken, 0);
    assert_int_equal(fake.n_requests, 0);
    assert_true(*mk_upstream_request_error_text(call.client));
    assert_int_equal(mk_upstream_request_server(call.client), -1);
    assert_true(fake_end_iteration());
    assert_int_equal(call.n_ready, 1);
    assert_int_equal(mk_upstream_request_read(call.client, (char[1]){0}, 1), error);
    call_fini(&call);
}

#define EXPECT_REFUSAL(...) expect_refusal(&(struct request){__VA_ARGS__}, -EINVAL)

static void send_rejects_request_smuggling(void **state)
{
    (void)state;
    EXPECT_REFUSAL(.method = "");
    EXPECT_REFUSAL(.method = "GET /");
    EXPECT_REFUSAL(.method = "GET\r\nX:");
    EXPECT_REFUSAL(.method = "CONNECT");
    EXPECT_REFUSAL(.target = "");
    EXPECT_REFUSAL(.target = "/ HTTP/1.1");
    EXPECT_REFUSAL(.target = "/\r\nA: b");
    EXPECT_REFUSAL(.target = "/\x7f");
    EXPECT_REFUSAL(.target = "/\xc3\xa4");
    EXPECT_REFUSAL(.target = "/#");
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("A", "b\r\nC: d")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("A", "b\0c")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("A:", "b")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("", "b")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("A b", "c")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("Connection", "a\nb")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("Host", "x"), FIELD("host", "y")}, .n_fields = 2);
    EXPECT_REFUSAL(.fields = {FIELD("A", "x")}, .n_fields = 1);
    EXPECT_REFUSAL(LINES(""));
    EXPECT_REFUSAL(LINES("A: b\r\n"));
    EXPECT_REFUSAL(LINES("Host: x"));
    EXPECT_REFUSAL(LINES("Host: x\r"));
    EXPECT_REFUSAL(LINES("Host: x\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\n\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\n\r\nA: b\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\n A: b\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\nA: b\0c\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\nA: b\nC: d\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\nA: b\rC: d\r\n"));
    EXPECT_REFUSAL(LINES("Host: x\r\nA: b"));
    EXPECT_REFUSAL(LINES("Host: x\r\n"), .fields = {FIELD("Host", "x")}, .n_fields = 1);
    EXPECT_REFUSAL(.upgrade = "web socket");
    EXPECT_REFUSAL(.upgrade = "websocket, x");
    EXPECT_REFUSAL(.upgrade = "websocket/");
    EXPECT_REFUSAL(.upgrade = "websocket", .length = 3);
    EXPECT_REFUSAL(.length = -2);
    struct request long_request = {.fields = {FIELD("Host", "x"), {MK_STR_INIT("A"), {large, 131072}}},
                                   .n_fields = 2};
    expect_refusal(&long_request, -E2BIG);
}

/* ---- Bodies ---- */

#define HEAD_OF(framing) "POST / HTTP/1.1\r\nHost: example.org\r\n" framing "\r\n"

static void begin(struct call *call)
{
    fake_init();
    call_init(call);
    call->ask.method = MK_STR("POST");
    struct mk_upstream_conn *l = fake_add(MK_STR(REPLY), -EAGAIN);
    l->is_gradual = true;
}

/* Lets the server respond after it has received the whole request. */
static void finish(struct call *call, enum mk_upstream_conn_disposition how)
{
    struct mk_upstream_conn *l = call_link();
    while (!call_is_over(call) && fake_arrive(l, SIZE_MAX))
        call_settle(call);
    assert_int_equal(call->head, 0);
    assert_str(mk_buf_str(&call->body), "hi");
    assert_true(l->is_released);
    assert_int_equal(l->how, how);
    call_fini(call);
}

static void send_small_body_in_one_write_with_head(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.body = MK_STR("hello");
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Content-Length: 5\r\n") "hello");
    assert_int_equal(fake.links[0].n_writes, 1);
    finish(&call, MK_UPSTREAM_CONN_KEEP);

    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.pull_max = 2;
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Content-Length: 5\r\n") "hello");
    assert_int_equal(fake.links[0].n_writes, 1);
    assert_int_equal(call.n_pulls, 3); /* the length marks the end of the body */
    finish(&call, MK_UPSTREAM_CONN_KEEP);

    begin(&call);
    call.ask.body = MK_STR("");
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Content-Length: 0\r\n"));
    finish(&call, MK_UPSTREAM_CONN_KEEP);
}

static void send_body_of_unknown_length_is_chunked(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello, world"), false);
    call.pull_max = 5;
    call_start(&call);
    assert_str(
        mk_buf_str(&fake.links[0].out),
        HEAD_OF(
            "Transfer-Encoding: chunked\r\n") "0005\r\nhello\r\n0005\r\n, wor\r\n0002\r\nld\r\n0\r\n\r\n");
    assert_int_equal(fake.links[0].n_writes, 1);
    finish(&call, MK_UPSTREAM_CONN_KEEP);

    begin(&call);
    call_send(&call, MK_STR(""), false);
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Transfer-Encoding: chunked\r\n") "0\r\n\r\n");
    finish(&call, MK_UPSTREAM_CONN_KEEP);
}

static bool trailer_at(void *ctx, size_t i, mk_str *name, mk_str *value)
{
    static const struct mk_header trailers[] = {FIELD("A", "b"), FIELD("Content-Length", "5"),
                                                FIELD("C\n", "d"), FIELD("E", "f\r\nG: h"),
                                                FIELD("I", " j ")};
    (void)ctx;
    if (i >= MK_LEN(trailers))
        return false;
    *name = trailers[i].name;
    *value = trailers[i].value;
    return true;
}

static void send_trailers_follow_chunks(void **state)
{
    static const struct mk_upstream_request_body source = {{.read = call_pull}, .trailer_at = trailer_at};
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("x"), false);
    call.ask.body_source = &source;
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out),
               HEAD_OF("Transfer-Encoding: chunked\r\n") "0001\r\nx\r\n0\r\nA: b\r\nI: j\r\n\r\n");
    finish(&call, MK_UPSTREAM_CONN_KEEP);
}

/* Decodes chunks; returns an absent string if they are malformed. */
static mk_str dechunk(mk_str text, struct mk_buf *out)
{
    struct mk_chunked chunked;
    mk_str data;
    mk_chunked_init(&chunked, 100);
    int step;
    while ((step = mk_chunked_decode(&chunked, &text, &data)) == MK_CHUNKED_DATA)
        mk_buf_add(out, data);
    return step == MK_CHUNKED_END && text.len == 0 ? mk_buf_str(out) : MK_STR_NULL;
}

static void expect_large(struct call *call, bool is_chunked)
{
    struct mk_upstream_conn *l = &fake.links[0];
    mk_str head = MK_STR(HEAD_OF("Content-Length: 3145728\r\n")),
           chunked_head = MK_STR(HEAD_OF("Transfer-Encoding: chunked\r\n"));
    mk_str content = mk_str_skip(mk_buf_str(&l->out), is_chunked ? chunked_head.len : head.len);
    struct mk_buf buffer = mk_buf_growing(sizeof large);
    if (is_chunked)
        content = dechunk(content, &buffer);
    assert_true(mk_str_starts(mk_buf_str(&l->out), is_chunked ? chunked_head : head));
    assert_true(mk_str_eq(content, mk_str_of(large, sizeof large)));
    mk_buf_free(&buffer);
    finish(call, MK_UPSTREAM_CONN_KEEP);
}

/* Sends a large body from memory (kind 0), from a source (1), or chunked (2). The server accepts at most
 * `takes_at_once` bytes at a time. */
static void send_large(int kind, size_t takes_at_once, size_t pull_max)
{
    struct call call;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    l->takes_at_once = takes_at_once;
    l->write_max = 300000;
    call.pull_max = pull_max;
    if (kind == 0)
        call.ask.body = mk_str_of(large, sizeof large);
    else
        call_send(&call, mk_str_of(large, sizeof large), kind == 1);
    call_start(&call);
    while (l->taken == l->write_max) {
        fake_accept_more(l, 500001);
        call_settle(&call);
    }
    expect_large(&call, kind == 2);
}

static void send_large_body_arrives_complete(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        send_large(kind, SIZE_MAX, SIZE_MAX);
        send_large(kind, 7001, SIZE_MAX);
        send_large(kind, SIZE_MAX, 999);
        send_large(kind, 12345, 4096);
    }
}

static void send_fast_source_yields(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.body = mk_str_of(large, sizeof large);
    call_start(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    assert_in_range(l->taken, TURN_MAX, TURN_MAX + WINDOW);
    assert_true(fake_end_iteration());
    assert_in_range(l->taken, 2 * TURN_MAX, 2 * (TURN_MAX + WINDOW));
    call_settle(&call);
    expect_large(&call, false);
}

static void send_buffer_is_bounded(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    l->write_max = 0;
    call_send(&call, mk_str_of(large, sizeof large), true);
    call_start(&call);
    assert_in_range(call.client->out.cap, WINDOW, 2 * WINDOW);
    assert_in_range(call.pulled, WINDOW / 2, WINDOW);
    l->write_max = SIZE_MAX;
    call.available = 1 << 20;
    fake_happen(l, MK_WRITABLE);
    call_settle(&call);
    assert_int_equal(call.pulled, 1 << 20);
    /* the request waits for its source, possibly for a long time */
    assert_in_range(call.client->out.cap, 1, 1024);
    call.available = SIZE_MAX;
    mk_upstream_request_resume(call.client);
    call_settle(&call);
    expect_large(&call, false);
}

static void send_waits_for_source(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 0;
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Content-Length: 5\r\n"));
    for (size_t n = 1; n <= 5; n++) {
        assert_true(mk_upstream_request_is_sending(call.client));
        call.available = n;
        mk_upstream_request_resume(call.client);
        assert_int_equal(fake.links[0].out.len, sizeof HEAD_OF("Content-Length: 5\r\n") - 1 + n);
    }
    assert_false(mk_upstream_request_is_sending(call.client));
    mk_upstream_request_resume(call.client); /* resuming without need is harmless */
    finish(&call, MK_UPSTREAM_CONN_KEEP);
}

/* ---- Failing sources ---- */

static void fail_with(int error, bool at_once)
{
    struct call call;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 2;
    call.pull_error = at_once ? error : 0;
    call_start(&call);
    if (!at_once) {
        assert_int_equal(call.head, -EAGAIN);
        call.pull_error = error;
        mk_upstream_request_resume(call.client);
        assert_int_equal(call.n_ready, 0);
        call_settle(&call);
        assert_int_equal(call.n_ready, 1);
    }
    assert_int_equal(call.head, error);
    assert_string_equal(mk_upstream_request_error_text(call.client),
                        "the content of the request could not be read");
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    assert_int_equal(fake.n_taken, 1);
    call_fini(&call);
}

static void send_source_error_is_reported(void **state)
{
    (void)state;
    fail_with(-EMSGSIZE, true);
    fail_with(-EMSGSIZE, false);
    fail_with(-ECONNRESET, false);
}

static void send_body_shorter_than_length_is_an_error(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.ask.length = 6;
    call_start(&call);
    assert_int_equal(call.head, -EBADMSG);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    assert_string_equal(mk_upstream_request_error_text(call.client),
                        "the content of the request is shorter than its length");
    call_fini(&call);
}

static void send_body_is_cut_at_its_length(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello, world"), true);
    call.ask.length = 5;
    call_start(&call);
    assert_str(mk_buf_str(&fake.links[0].out), HEAD_OF("Content-Length: 5\r\n") "hello");
    finish(&call, MK_UPSTREAM_CONN_KEEP);
}

/* ---- Early responses ---- */

static void send_early_response_is_delivered(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    l->write_max = 1000;
    call.ask.body = mk_str_of(large, sizeof large);
    call_start(&call);
    finish(&call, MK_UPSTREAM_CONN_CLOSE); /* the server has not read the whole body */

    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    call.available = 3; /* the client is slow */
    call_start(&call);
    finish(&call, MK_UPSTREAM_CONN_CLOSE);
}

static void send_early_response_then_close_is_delivered(void **state)
{
    static const int errors[] = {-EPIPE, -ECONNRESET};
    (void)state;
    for (size_t i = 0; i < MK_LEN(errors); i++) {
        struct call call;
        begin(&call);
        struct mk_upstream_conn *l = &fake.links[0];
        l->write_max = 1000;
        call.ask.body = mk_str_of(large, sizeof large);
        call_start(&call);
        l->write_error = errors[i];
        l->arrived = l->in.len + 1;
        l->in_end = -ECONNRESET;
        fake_happen(l, MK_WRITABLE | MK_READABLE | MK_HUNG_UP);
        call_settle(&call);
        finish(&call, MK_UPSTREAM_CONN_CLOSE);
    }
}

static void send_request_and_response_overlap(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    l->in = MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\necho");
    call_send(&call, MK_STR("echo"), true);
    call.available = 0;
    call_start(&call);
    fake_arrive(l, l->in.len - 4);
    call_settle(&call);
    assert_int_equal(call.head, 0);
    for (size_t n = 1; n <= 4; n++) {
        call.available = n;
        mk_upstream_request_resume(call.client);
        assert_true(mk_str_ends(mk_buf_str(&l->out), mk_str_first(MK_STR("echo"), n)));
        fake_arrive(l, 1);
        call_settle(&call);
        assert_int_equal(call.body.len, n);
    }
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    call_fini(&call);
}

static void send_source_error_keeps_response_in_progress(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    call_send(&call, MK_STR("hello"), true);
    call.available = 1;
    call_start(&call);
    fake_arrive(l, l->in.len - 1);
    call_settle(&call);
    assert_int_equal(call.head, 0);
    call.pull_error = -ECONNRESET;
    mk_upstream_request_resume(call.client);
    call_settle(&call);
    finish(&call, MK_UPSTREAM_CONN_CLOSE);
}

static void abort_transfer(struct call *call, bool has_answered)
{
    begin(call);
    struct mk_upstream_conn *l = &fake.links[0];
    call_send(call, mk_str_of(large, sizeof large), true);
    call->available = 10;
    call_start(call);
    call->available = SIZE_MAX;
    l->arrived = has_answered ? l->in.len : 0; /* no event has reported the response yet */
    l->write_max = l->taken;
    l->write_error = -EPIPE;
    mk_upstream_request_resume(call->client);
    assert_int_equal(call->n_ready, 0); /* resuming never runs callbacks */
    call_settle(call);
}

static void send_write_error_still_reads_response(void **state)
{
    struct call call;
    (void)state;
    abort_transfer(&call, true);
    finish(&call, MK_UPSTREAM_CONN_CLOSE);
    abort_transfer(&call, false);
    assert_int_equal(call.head, -EPIPE);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
    assert_string_equal(mk_upstream_request_error_text(call.client),
                        "the server closed the connection while the request was sent");
    call_fini(&call);

    begin(&call);
    call.ask.body = mk_str_of(large, sizeof large);
    fake.links[0].write_max = 5000;
    fake.links[0].write_error = -EPIPE;
    call_start(&call);
    assert_int_equal(call.head, -EPIPE);
    call_fini(&call);
}

/* ---- Upgrades ---- */

static void upgrade(struct call *call, mk_str content, size_t available)
{
    begin(call);
    call->ask.method = MK_STR("GET");
    call->ask.upgrade = MK_STR("x");
    call->ask.body_source = &call_source;
    call->content = content;
    call->available = available;
    struct mk_upstream_conn *l = &fake.links[0];
    l->in = MK_STR("HTTP/1.1 101 \r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc");
    call_start(call);
    assert_int_equal(call->pulled, 0);
    l->out.len = 0;
    l->write_max = l->taken + 4;
    fake_arrive(l, l->in.len - 1);
    call_settle(call);
    assert_true(mk_upstream_request_is_upgraded(call->client));
}

static void send_upgraded_source_is_sent_raw(void **state)
{
    struct call call;
    (void)state;
    upgrade(&call, MK_STR("hello, world"), 11);
    struct mk_upstream_conn *l = &fake.links[0];
    assert_str(mk_buf_str(&call.body), "ab");
    assert_str(mk_buf_str(&l->out), "hell");
    fake_accept_more(l, SIZE_MAX - l->write_max);
    call_settle(&call);
    call.available = SIZE_MAX;
    assert_false(l->has_ended);
    mk_upstream_request_resume(call.client);
    assert_str(mk_buf_str(&l->out), "hello, world");
    assert_true(l->has_ended);
    assert_int_equal(call.end, -EAGAIN); /* the other direction stays open */
    fake_arrive(l, 1);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "abc");
    assert_false(l->is_released);
    call_fini(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
}

static void send_upgraded_data_follows_request(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.method = MK_STR("GET");
    call.ask.upgrade = MK_STR("x");
    struct mk_upstream_conn *l = &fake.links[0];
    l->in = MK_STR("HTTP/1.1 101 \r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    l->write_max = 10;
    call_start(&call);
    fake_arrive(l, SIZE_MAX);
    call_settle(&call);
    assert_int_equal(call.head, -EPROTO);
    call_fini(&call);
}

static void send_silent_tunnel_frees_buffer(void **state)
{
    struct call call;
    (void)state;
    upgrade(&call, MK_STR("hell, and more"), 4);
    struct mk_upstream_conn *l = &fake.links[0];
    l->write_max = SIZE_MAX;
    call.available = 5;
    mk_upstream_request_resume(call.client);
    call_settle(&call);
    assert_in_range(call.client->out.cap, 0, 1024);
    assert_false(mk_timer_is_set(&call.client->timer));
    call_fini(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_writes_request_head),
        cmocka_unit_test(send_empty_post_has_content_length_0),
        cmocka_unit_test(send_drops_hop_by_hop_headers_of_caller),
        cmocka_unit_test(send_copies_header_lines_unchanged),
        cmocka_unit_test(send_te_trailers_is_forwarded),
        cmocka_unit_test(send_upgrade_headers_are_added),
        cmocka_unit_test(send_rejects_request_smuggling),
        cmocka_unit_test(send_small_body_in_one_write_with_head),
        cmocka_unit_test(send_body_of_unknown_length_is_chunked),
        cmocka_unit_test(send_trailers_follow_chunks),
        cmocka_unit_test(send_large_body_arrives_complete),
        cmocka_unit_test(send_fast_source_yields),
        cmocka_unit_test(send_buffer_is_bounded),
        cmocka_unit_test(send_waits_for_source),
        cmocka_unit_test(send_source_error_is_reported),
        cmocka_unit_test(send_body_shorter_than_length_is_an_error),
        cmocka_unit_test(send_body_is_cut_at_its_length),
        cmocka_unit_test(send_early_response_is_delivered),
        cmocka_unit_test(send_early_response_then_close_is_delivered),
        cmocka_unit_test(send_request_and_response_overlap),
        cmocka_unit_test(send_source_error_keeps_response_in_progress),
        cmocka_unit_test(send_write_error_still_reads_response),
        cmocka_unit_test(send_upgraded_source_is_sent_raw),
        cmocka_unit_test(send_upgraded_data_follows_request),
        cmocka_unit_test(send_silent_tunnel_frees_buffer),
    };
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)('a' + i * 7 / 3 % 26);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
