/* SPDX-License-Identifier: Apache-2.0 */
/* FastCGI, SCGI and uwsgi: encoded requests, and responses that arrive in pieces of every size. */
#include "unit/upstream/request_case.h"

#define OUT(len, text) "\1\6\0\1\0" len "\0\0" text
#define ERR(len, text) "\1\7\0\1\0" len "\0\0" text
#define END(status)    "\1\3\0\1\0\10\0\0\0\0\0\0" status "\0\0\0"
#define BEGIN          "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"
/* clang-format off */
#define FIELD(name, value) {MK_STR_INIT(name), MK_STR_INIT(value)}
/* clang-format on */

static const struct mk_header variables[] = {FIELD("A", "b"), FIELD("CONTENT_LENGTH", "77"),
                                             FIELD("SCGI", "2"), FIELD("EMPTY", "")};

static void begin(struct call *call, enum mk_upstream_protocol protocol, mk_str in, int in_end)
{
    fake_init();
    call_init(call);
    fake_add(in, in_end)->is_gradual = true;
    call->ask.protocol = protocol;
    call->ask.headers = variables;
    call->ask.n_headers = MK_LEN(variables);
}

/* ---- Requests ---- */

struct request {
    enum mk_upstream_protocol protocol;
    const char *method, *content;
    bool is_text; /* the body is in memory */
};

static void expect_request(const struct request *r, mk_str text)
{
    struct call call;
    begin(&call, r->protocol, MK_STR(""), -EAGAIN);
    if (r->method)
        call.ask.method = mk_str_from_c(r->method);
    if (r->content && r->is_text)
        call.ask.body = mk_str_from_c(r->content);
    else if (r->content)
        call_send(&call, mk_str_from_c(r->content), true);
    call.pull_max = 3;
    call_start(&call);
    assert_true(mk_str_eq(mk_buf_str(&fake.links[0].out), text));
    assert_int_equal(fake.links[0].n_writes, 1);
    call_fini(&call);
}

#define EXPECT(text, ...) expect_request(&(struct request){__VA_ARGS__}, MK_STR(text))

static void scgi_request_is_a_netstring(void **state)
{
    (void)state;
    EXPECT("35:CONTENT_LENGTH\0"
           "0\0"
           "SCGI\0"
           "1\0"
           "A\0"
           "b\0"
           "EMPTY\0"
           "\0,",
           .protocol = MK_UPSTREAM_PROTOCOL_SCGI);
    EXPECT("35:CONTENT_LENGTH\0"
           "5\0"
           "SCGI\0"
           "1\0"
           "A\0"
           "b\0"
           "EMPTY\0"
           "\0,hello",
           .protocol = MK_UPSTREAM_PROTOCOL_SCGI, .content = "hello");
    EXPECT("35:CONTENT_LENGTH\0"
           "5\0"
           "SCGI\0"
           "1\0"
           "A\0"
           "b\0"
           "EMPTY\0"
           "\0,hello",
           .protocol = MK_UPSTREAM_PROTOCOL_SCGI, .content = "hello", .is_text = true);
}

static void uwsgi_request_has_length_prefixes(void **state)
{
    (void)state;
    EXPECT("\0\17\0\0"
           "\1\0A\1\0b"
           "\5\0EMPTY\0\0",
           .protocol = MK_UPSTREAM_PROTOCOL_UWSGI);
    EXPECT("\0\42\0\0"
           "\16\0CONTENT_LENGTH\1\0"
           "5"
           "\1\0A\1\0b"
           "\5\0EMPTY\0\0"
           "hello",
           .protocol = MK_UPSTREAM_PROTOCOL_UWSGI, .content = "hello");
}

static void fastcgi_request_has_records(void **state)
{
    (void)state;
    EXPECT(BEGIN "\1\4\0\1\0\13\0\0"
                 "\1\1Ab"
                 "\5\0EMPTY"
                 "\1\4\0\1\0\0\0\0"
                 "\1\5\0\1\0\0\0\0",
           .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI);
    EXPECT(BEGIN "\1\4\0\1\0\34\0\0"
                 "\16\1CONTENT_LENGTH5"
                 "\1\1Ab"
                 "\5\0EMPTY"
                 "\1\4\0\1\0\0\0\0"
                 "\1\5\0\1\0\3\0\0hel"
                 "\1\5\0\1\0\2\0\0lo"
                 "\1\5\0\1\0\0\0\0",
           .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI, .content = "hello");
    EXPECT(BEGIN "\1\4\0\1\0\34\0\0"
                 "\16\1CONTENT_LENGTH0"
                 "\1\1Ab"
                 "\5\0EMPTY"
                 "\1\4\0\1\0\0\0\0"
                 "\1\5\0\1\0\0\0\0",
           .protocol = MK_UPSTREAM_PROTOCOL_FASTCGI, .method = "POST");
}

static void expect_refusal(struct call *call, int error)
{
    call_start(call);
    assert_int_equal(call->head, error);
    assert_true(*mk_upstream_request_error_text(call->client));
    assert_int_equal(fake.n_taken, 0);
    call_fini(call);
}

static void cgi_request_invalid_variables_are_rejected(void **state)
{
    static const struct mk_header bad[] = {FIELD("", "x"), FIELD("A=B", "x"), FIELD("A\0B", "x"),
                                           FIELD("A", "x\0y")};
    (void)state;
    for (enum mk_upstream_protocol protocol = MK_UPSTREAM_PROTOCOL_FASTCGI;
         protocol <= MK_UPSTREAM_PROTOCOL_UWSGI; protocol++) {
        struct call call;
        for (size_t i = 0; i < MK_LEN(bad); i++) {
            begin(&call, protocol, MK_STR(""), 0);
            call.ask.headers = &bad[i];
            call.ask.n_headers = 1;
            expect_refusal(&call, -EINVAL);
        }
        begin(&call, protocol, MK_STR(""), 0);
        call.ask.length = MK_LENGTH_UNKNOWN;
        expect_refusal(&call, -EINVAL);
        begin(&call, protocol, MK_STR(""), 0);
        call.ask.upgrade = MK_STR("websocket");
        expect_refusal(&call, -EINVAL);
    }
}

/* Starts a request with a single variable A of this length. */
static void begin_long(struct call *call, enum mk_upstream_protocol protocol, struct mk_header *field,
                       size_t len)
{
    static char value[128 * 1024];
    begin(call, protocol, MK_STR(""), -EAGAIN);
    memset(value, 'v', sizeof value);
    *field = (struct mk_header){.name = MK_STR("A"), .value = mk_str_of(value, len)};
    call->ask.headers = field;
    call->ask.n_headers = 1;
}

static void uwsgi_request_holds_64_kb_of_variables(void **state)
{
    struct mk_header field;
    struct call call;
    (void)state;
    begin_long(&call, MK_UPSTREAM_PROTOCOL_UWSGI, &field, 65535 - 5);
    call_start(&call);
    assert_true(mk_str_starts(mk_buf_str(&fake.links[0].out), MK_STR("\0\377\377\0\1\0A")));
    assert_int_equal(fake.links[0].out.len, 4 + 65535);
    call_fini(&call);
    begin_long(&call, MK_UPSTREAM_PROTOCOL_UWSGI, &field, 65535 - 4);
    expect_refusal(&call, -E2BIG);
    begin_long(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, &field, 128 * 1024 - 10);
    expect_refusal(&call, -E2BIG); /* no request header is that long */
}

/* ---- Responses ---- */

struct answer {
    mk_str in;
    int in_end;
    const char *heads, *body, *errors;
    int end;
    enum mk_upstream_conn_disposition disposition;
    bool is_local;
};

static struct {
    enum mk_upstream_protocol protocol;
    const char *method;
} request_ops;

static void check(const struct answer *a, size_t first, size_t size, size_t read_size)
{
    struct call call;
    begin(&call, request_ops.protocol, a->in, a->in_end);
    call.read_size = read_size;
    call.ask.method = mk_str_from_c(request_ops.method);
    call_run(&call, first, size);
    assert_str(mk_buf_str(&call.heads), a->heads);
    assert_str(mk_buf_str(&call.body), a->body);
    assert_str(mk_buf_str(&call.errors), a->errors ? a->errors : "");
    assert_int_equal(call.head ? call.head : call.end, a->end);
    assert_int_equal(mk_upstream_request_is_local_redirect(call.client), a->is_local);
    assert_int_equal(*mk_upstream_request_error_text(call.client) != 0, a->end != 0);
    struct mk_upstream_conn *l = &fake.links[0];
    assert_true(l->is_released);
    assert_int_equal(l->how, a->disposition);
    call_fini(&call);
}

static void check_all(const struct answer *a)
{
    static const size_t sizes[] = {1, 3, 4096};
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        check(a, a->in.len, a->in.len, sizes[i]);
        check(a, 1, 1, sizes[i]);
        for (size_t first = 1; first < a->in.len; first++)
            check(a, first, a->in.len, sizes[i]);
    }
}

#define CHECK(text, ...) check_all(&(struct answer){MK_STR_INIT(text), __VA_ARGS__})

static void fastcgi_response_is_parsed(void **state)
{
    (void)state;
    CHECK(OUT("\14", "A: b\n\nhello,") OUT("\6", " world") OUT("\0", "") END("\0"), -EAGAIN, "200 A: b|",
          "hello, world", .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK(OUT("\3", "Sta") OUT("\17", "tus: 404 X\r\nA: ") OUT("\7", "b\r\n\r\nno") END("\0"), -EAGAIN,
          "404 A: b|", "no", .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("\1\6\0\1\0\7\1\0A: b\n\nxp\1\3\0\1\0\10\2\0\0\0\0\0\0\0\0\0pp", -EAGAIN, "200 A: b|", "x",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK(OUT("\6", "A: b\n\n") END("\0"), -EAGAIN, "200 A: b|", "", .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void fastcgi_stderr_is_kept_out_of_response(void **state)
{
    (void)state;
    CHECK(ERR("\2", "no") OUT("\7", "A: b\n\nx") ERR("\3", "tic") OUT("\1", "y") ERR("\1", "e") ERR("\0", "")
              END("\0"),
          -EAGAIN, "200 A: b|", "xy", "notice", .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void fastcgi_response_content_length_is_enforced(void **state)
{
    (void)state;
    CHECK(OUT("\30", "Content-Length: 5\n\nhello") END("\0"), -EAGAIN, "200|", "hello",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK(OUT("\32", "Content-Length: 5\n\nhello,x") OUT("\1", "y") END("\0"), -EAGAIN, "200|", "hello",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK(OUT("\26", "Content-Length: 5\n\nhel") END("\0"), -EAGAIN, "200|", "hel", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\16", "Status: 304\n\nx") END("\0"), -EAGAIN, "304|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void fastcgi_response_local_redirect_is_recognized(void **state)
{
    (void)state;
    CHECK(OUT("\16", "Location: /x\n\n") END("\0"), -EAGAIN, "302 Location: /x|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP, .is_local = true);
    CHECK(OUT("\17", "Location: //x\n\n") END("\0"), -EAGAIN, "302 Location: //x|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void fastcgi_response_to_head_has_no_body(void **state)
{
    (void)state;
    request_ops.method = "HEAD";
    CHECK(OUT("\14", "A: b\n\nhello,") OUT("\6", " world") END("\0"), -EAGAIN, "200 A: b|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    request_ops.method = "GET";
}

static void fastcgi_truncated_response_is_an_error(void **state)
{
    (void)state;
    CHECK(OUT("\7", "A: b\n\nx"), 0, "200 A: b|", "x", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\7", "A: b\n\nx") OUT("\0", ""), 0, "200 A: b|", "x", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\7", "A: b\n\nx"), -ECONNRESET, "200 A: b|", "x", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\3", "A: "), 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\3", "A: ") END("\0"), 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(END("\0"), 0, "", "", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(ERR("\2", "no") END("\0"), 0, "", "", "no", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(END("\2"), 0, "", "", .end = -EBUSY, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(END("\3"), 0, "", "", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\7", "A: b\n\nx") "\1\6\0\2\0\0\0\0", 0, "200 A: b|", "x", .end = -EPROTO,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\6", "A: b\n\n") "HTTP/1.1 200 OK", 0, "200 A: b|", "", .end = -EPROTO,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK(OUT("\2", "\n\n") END("\0"), 0, "", "", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 400 Bad Request\r\n\r\n", 0, "", "", .end = -EPROTO,
          .disposition = MK_UPSTREAM_CONN_FAILED);
}

static void fastcgi_bytes_after_end_request_close_connection(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, MK_STR(OUT("\7", "A: b\n\nx") END("\0") "\1"), -EAGAIN);
    call_run(&call, SIZE_MAX, SIZE_MAX);
    assert_int_equal(call.end, 0);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    call_fini(&call);
}

/* ---- SCGI and uwsgi ---- */

static void scgi_and_uwsgi_response_ends_with_connection(void **state)
{
    (void)state;
    for (request_ops.protocol = MK_UPSTREAM_PROTOCOL_SCGI; request_ops.protocol <= MK_UPSTREAM_PROTOCOL_UWSGI;
         request_ops.protocol++) {
        CHECK("Status: 201 X\r\nA: b\r\nConnection: x\r\n\r\nhello", 0, "201 A: b|", "hello",
              .disposition = MK_UPSTREAM_CONN_CLOSE);
        CHECK("HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nno", 0, "404 A: b|", "no",
              .disposition = MK_UPSTREAM_CONN_CLOSE);
        CHECK("Content-Length: 2\n\nhi", -EAGAIN, "200|", "hi", .disposition = MK_UPSTREAM_CONN_CLOSE);
        CHECK("Content-Length: 2\n\nhi, and more", -EAGAIN, "200|", "hi",
              .disposition = MK_UPSTREAM_CONN_CLOSE);
        CHECK("Content-Length: 2\n\nh", 0, "200|", "h", .end = -ECONNRESET,
              .disposition = MK_UPSTREAM_CONN_FAILED);
        CHECK("A: b\n\nhello", -ECONNRESET, "200 A: b|", "hello", .end = -ECONNRESET,
              .disposition = MK_UPSTREAM_CONN_FAILED);
        CHECK("Location: /\n\n", 0, "302 Location: /|", "", .disposition = MK_UPSTREAM_CONN_CLOSE,
              .is_local = true);
        CHECK("A: b\n", 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
        CHECK("", 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
        CHECK("Transfer-Encoding: chunked\n\n0\r\n\r\n", 0, "", "", .end = -EPROTO,
              .disposition = MK_UPSTREAM_CONN_FAILED);
        CHECK("hello\n\n", 0, "", "", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    }
    request_ops.protocol = MK_UPSTREAM_PROTOCOL_FASTCGI;
}

/* ---- FastCGI connections ---- */

static void fastcgi_connection_is_released_after_last_byte(void **state)
{
    struct call call;
    char buffer[5];
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, MK_STR(OUT("\30", "Content-Length: 5\n\nhello") END("\0")),
              -EAGAIN);
        struct mk_upstream_conn *l = &fake.links[0];
        call.is_paused = true;
        call_start(&call);
        fake_arrive(l, l->in.len - (ends ? 0 : 1));
        call_settle(&call);
        assert_int_equal(call.head, 0);
        assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), 5);
        call_fini(&call);
        assert_int_equal(l->how, ends ? MK_UPSTREAM_CONN_KEEP : MK_UPSTREAM_CONN_CLOSE);
    }
}

static void fastcgi_end_request_may_follow_body_later(void **state)
{
    struct call call;
    char buffer[5];
    (void)state;
    begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, MK_STR(OUT("\30", "Content-Length: 5\n\nhello") END("\0")),
          -EAGAIN);
    struct mk_upstream_conn *l = &fake.links[0];
    call.is_paused = true;
    call_start(&call);
    fake_arrive(l, l->in.len - 16);
    call_settle(&call);
    assert_int_equal(mk_upstream_request_read(call.client, buffer, sizeof buffer), 5);
    fake_arrive(l, 16);
    call_fini(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
}

static void fastcgi_overloaded_server_tries_another(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, MK_STR(END("\2")), -EAGAIN);
    fake.n_servers = 2;
    call.ask.limits.max_tries = 2;
    struct mk_upstream_conn *other = fake_add(MK_STR(OUT("\7", "A: b\n\nx") END("\0")), -EAGAIN);
    other->is_gradual = true;
    other->server = 1;
    call_run(&call, SIZE_MAX, SIZE_MAX);
    assert_str(mk_buf_str(&call.body), "x");
    assert_int_equal(other->how, MK_UPSTREAM_CONN_KEEP);
    call_fini(&call);
}

static void fastcgi_stale_connection_is_replaced(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, MK_STR(""), 0);
    fake.links[0].was_kept = true;
    struct mk_upstream_conn *fresh = fake_add(MK_STR(OUT("\7", "A: b\n\nx") END("\0")), -EAGAIN);
    fresh->is_gradual = true;
    call_send(&call, MK_STR("hello"), true);
    call_run(&call, SIZE_MAX, SIZE_MAX);
    assert_str(mk_buf_str(&call.body), "x");
    assert_true(mk_str_eq(mk_buf_str(&fake.links[0].out), mk_buf_str(&fresh->out)));
    call_fini(&call);
}

/* Endless output on stderr must not block the loop. */
static void fastcgi_flood_of_stderr_yields(void **state)
{
    struct mk_buf text = mk_buf_growing(8 << 20);
    struct call call;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        mk_buf_add(&text, MK_STR("\1\7\0\1\10\0\0\0"));
        for (int j = 0; j < 2048; j++)
            mk_buf_add_char(&text, 'e');
    }
    mk_buf_add(&text, MK_STR(OUT("\7", "A: b\n\nx") END("\0")));
    begin(&call, MK_UPSTREAM_PROTOCOL_FASTCGI, mk_buf_str(&text), -EAGAIN);
    call_start(&call);
    struct mk_upstream_conn *l = &fake.links[0];
    fake_arrive(l, SIZE_MAX);
    l->n_reads = 0;
    call_go(&call);
    assert_int_equal(call.head, -EAGAIN);
    assert_in_range(l->n_reads, 30, 70);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "x");
    call_fini(&call);
    mk_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scgi_request_is_a_netstring),
        cmocka_unit_test(uwsgi_request_has_length_prefixes),
        cmocka_unit_test(fastcgi_request_has_records),
        cmocka_unit_test(cgi_request_invalid_variables_are_rejected),
        cmocka_unit_test(uwsgi_request_holds_64_kb_of_variables),
        cmocka_unit_test(fastcgi_response_is_parsed),
        cmocka_unit_test(fastcgi_stderr_is_kept_out_of_response),
        cmocka_unit_test(fastcgi_response_content_length_is_enforced),
        cmocka_unit_test(fastcgi_response_local_redirect_is_recognized),
        cmocka_unit_test(fastcgi_response_to_head_has_no_body),
        cmocka_unit_test(fastcgi_truncated_response_is_an_error),
        cmocka_unit_test(fastcgi_bytes_after_end_request_close_connection),
        cmocka_unit_test(scgi_and_uwsgi_response_ends_with_connection),
        cmocka_unit_test(fastcgi_connection_is_released_after_last_byte),
        cmocka_unit_test(fastcgi_end_request_may_follow_body_later),
        cmocka_unit_test(fastcgi_overloaded_server_tries_another),
        cmocka_unit_test(fastcgi_stale_connection_is_replaced),
        cmocka_unit_test(fastcgi_flood_of_stderr_yields),
    };
    request_ops.method = "GET";
    request_ops.protocol = MK_UPSTREAM_PROTOCOL_FASTCGI;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
