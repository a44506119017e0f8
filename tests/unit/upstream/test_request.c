/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP responses arrive at once, split in two at every offset, and byte by byte; the caller reads them with
 * buffers of several sizes. The result must be the same. */
#include "unit/upstream/request_case.h"

struct answer {
    const char *in;
    int in_end; /* result of reads after `in` */
    const char *heads, *body, *trailers;
    int end; /* result at the end of the body, or the error before the head */
    enum mk_upstream_conn_disposition disposition; /* how the connection is released */
};

static struct {
    mk_str method, upgrade;
} request_ops;

static void check(const struct answer *a, size_t first, size_t size, size_t read_size, bool is_lazy)
{
    struct call call;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(mk_str_from_c(a->in), a->in_end);
    l->is_gradual = true;
    call.read_size = read_size;
    call.is_lazy = is_lazy;
    call.ask.method = request_ops.method;
    call.ask.upgrade = request_ops.upgrade;
    call_run(&call, first, size);
    assert_str(mk_buf_str(&call.heads), a->heads);
    assert_str(mk_buf_str(&call.body), a->body);
    assert_str(mk_buf_str(&call.trailers), a->trailers ? a->trailers : "");
    assert_int_equal(call.head ? call.head : call.end, a->end);
    assert_int_equal(l->n_answered, *a->in != 0);
    assert_true(l->is_released || call.end == -EAGAIN || mk_upstream_request_is_upgraded(call.client));
    assert_int_equal(*mk_upstream_request_error_text(call.client) != 0, a->end != 0 && a->end != -EAGAIN);
    assert_str(mk_upstream_request_server_name(call.client), "a:80");
    call_fini(&call);
    assert_int_equal(l->how, a->disposition);
}

static void check_all(const struct answer *a)
{
    static const size_t sizes[] = {1, 3, 4096};
    size_t len = strlen(a->in);
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        check(a, len, len, sizes[i], false);
        check(a, 1, 1, sizes[i], false);
        for (size_t first = 1; first < len; first++) {
            check(a, first, len, sizes[i], false);
            check(a, first, len, sizes[i], true);
        }
    }
    check(a, len, len, 4096, true);
}

#define CHECK(...) check_all(&(struct answer){__VA_ARGS__})

static void response_with_content_length_is_parsed(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello", -EAGAIN, "200 A: b|", "hello",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", -EAGAIN, "404|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 204 \r\n\r\n", -EAGAIN, "204|", "", .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", -EAGAIN, "200|", "hi",
          .disposition = MK_UPSTREAM_CONN_CLOSE);
    CHECK("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", -EAGAIN, "200|", "hi",
          .disposition = MK_UPSTREAM_CONN_CLOSE);
}

static void response_chunked_body_is_decoded(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n",
          -EAGAIN, "200|", "hello, world", .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n1\r\na\r\n0\r\nT: "
          "x\r\nContent-Length: 3\r\nU: y\r\n\r\n",
          -EAGAIN, "200 Trailer: T|", "a", "T: x|U: y|", .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void response_without_length_ends_with_connection(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 200 OK\r\n\r\nhello", 0, "200|", "hello", .disposition = MK_UPSTREAM_CONN_CLOSE);
    CHECK("HTTP/1.1 200 OK\r\n\r\n", 0, "200|", "", .disposition = MK_UPSTREAM_CONN_CLOSE);
    CHECK("HTTP/1.1 200 OK\r\n\r\nhello", -ECONNRESET, "200|", "hello", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
}

static void response_interim_responses_are_forwarded(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 103 \r\nLink: "
          "y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
          "2\r\n\r\nhi",
          -EAGAIN, "103 Link: x|103 Link: y|200|", "hi", .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void response_hop_by_hop_headers_are_removed(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 200 OK\r\nA: b\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nx-hop: "
          "1\r\nUpgrade: h2c\r\nTE: x\r\nProxy-Connection: x\r\n"
          "Status: mine\r\nTrailer: T\r\nDate: now\r\nContent-Length: 0\r\n\r\n",
          -EAGAIN, "200 A: b Status: mine Trailer: T Date: now|", "", .disposition = MK_UPSTREAM_CONN_KEEP);
}

static void response_truncated_is_an_error(void **state)
{
    (void)state;
    CHECK("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 0, "200|", "hel", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", -ECONNRESET, "200|", "hel", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 0, "200|", "hel",
          .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", 0, "200|", "hello",
          .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 O", 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 OK\r\nA: b", -ECONNRESET, "", "", .end = -ECONNRESET,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("", 0, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("", -ECONNRESET, "", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 103 \r\n\r\n", 0, "103|", "", .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
}

static void response_malformed_is_an_error(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 99 X\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    };
    for (size_t i = 0; i < MK_LEN(texts); i++)
        CHECK(texts[i], -EAGAIN, "", "", .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz", -EAGAIN, "200|", "ab",
          .end = -EPROTO, .disposition = MK_UPSTREAM_CONN_FAILED);
}

static void response_to_head_has_no_body(void **state)
{
    (void)state;
    request_ops.method = MK_STR("HEAD");
    CHECK("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", -EAGAIN, "200|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", -EAGAIN, "200|", "",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    request_ops.method = MK_STR("GET");
}

static void response_upgraded_protocol_is_read_raw(void **state)
{
    (void)state;
    request_ops.upgrade = MK_STR("websocket");
    CHECK("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
          "WebSocket\r\nSec-WebSocket-Accept: x\r\n\r\n\x81\x02hi",
          0, "101 Sec-WebSocket-Accept: x|", "\x81\x02hi", .disposition = MK_UPSTREAM_CONN_CLOSE);
    CHECK("HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: example\r\n\r\n", -EAGAIN, "", "", .end = -EPROTO,
          .disposition = MK_UPSTREAM_CONN_FAILED);
    CHECK("HTTP/1.1 403 \r\nContent-Length: 2\r\n\r\nno", -EAGAIN, "403|", "no",
          .disposition = MK_UPSTREAM_CONN_KEEP);
    CHECK("HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nabc", -ECONNRESET, "101|", "abc",
          .end = -ECONNRESET, .disposition = MK_UPSTREAM_CONN_FAILED);
    request_ops.upgrade = MK_STR_NULL;
}

/* ---- Bytes after a response ---- */

/* Reads with a buffer of exactly the remaining body, so that no read can see the bytes after it. */
static void check_following_bytes(const char *in, size_t first, size_t read_size,
                                  enum mk_upstream_conn_disposition disposition)
{
    struct call call;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(mk_str_from_c(in), -EAGAIN);
    l->is_gradual = true;
    call.read_size = read_size;
    call_run(&call, first, SIZE_MAX);
    assert_int_equal(call.end, 0);
    assert_true(l->is_released);
    assert_int_equal(l->how, disposition);
    call_fini(&call);
}

static void response_followed_by_bytes_closes_connection(void **state)
{
    static const char clean[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                      more[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n",
                      chunks[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nH",
                      none[] = "HTTP/1.1 204 \r\n\r\nH";
    static const size_t sizes[] = {1, 2, 5, 6, 100};
    (void)state;
    for (size_t i = 0; i < MK_LEN(sizes); i++) {
        for (size_t first = 1; first < sizeof clean; first++)
            check_following_bytes(clean, first, sizes[i], MK_UPSTREAM_CONN_KEEP);
        /* The pool detects these bytes if they arrive after the end of the response. */
        check_following_bytes(more, sizeof more, sizes[i], MK_UPSTREAM_CONN_CLOSE);
        check_following_bytes(more, sizeof clean - 6, sizes[i], MK_UPSTREAM_CONN_CLOSE);
        check_following_bytes(more, sizeof clean - 3, sizes[i], MK_UPSTREAM_CONN_CLOSE);
        check_following_bytes(chunks, sizeof chunks, sizes[i], MK_UPSTREAM_CONN_CLOSE);
        check_following_bytes(chunks, sizeof chunks - 9, sizes[i], MK_UPSTREAM_CONN_CLOSE);
        check_following_bytes(none, sizeof none, sizes[i], MK_UPSTREAM_CONN_CLOSE);
    }
}

static void response_followed_by_eof_closes_connection(void **state)
{
    struct call call;
    (void)state;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), 0);
    l->is_gradual = true;
    call_start(&call);
    l->arrived = l->in.len + 1;
    fake_happen(l, MK_READABLE | MK_ENDED); /* the server closes its side together with the response */
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "hi");
    assert_int_equal(call.end, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    call_fini(&call);
}

/* The body and the end of the connection arrive in one event. */
static void response_body_and_eof_in_one_event(void **state)
{
    struct call call;
    (void)state;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(MK_STR("HTTP/1.1 200 OK\r\n\r\nhi"), 0);
    l->is_gradual = true;
    call_start(&call);
    l->arrived = l->in.len + 1;
    fake_happen(l, MK_READABLE | MK_ENDED);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "hi");
    assert_int_equal(call.end, 0);
    call_fini(&call);
}

/* ---- Response properties ---- */

static void begin(struct call *call, mk_str in)
{
    fake_init();
    call_init(call);
    fake_add(in, -EAGAIN);
    call->is_paused = true;
    call->ask.method = request_ops.method;
    call_start(call);
    assert_int_equal(call->head, 0);
}

static int64_t length_of(const char *head)
{
    struct call call;
    begin(&call, mk_str_from_c(head));
    int64_t length = mk_upstream_request_length(call.client);
    call_fini(&call);
    return length;
}

static void response_length_comes_from_content_length(void **state)
{
    (void)state;
    assert_int_equal(length_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 5);
    assert_int_equal(length_of("HTTP/1.1 200 OK\r\n\r\n"), MK_LENGTH_UNKNOWN);
    assert_int_equal(length_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), MK_LENGTH_UNKNOWN);
    assert_int_equal(length_of("HTTP/1.1 204 OK\r\n\r\n"), 0);
    assert_int_equal(length_of("HTTP/1.1 304 OK\r\n\r\n"), MK_LENGTH_UNKNOWN);
    assert_int_equal(length_of("HTTP/1.1 304 OK\r\nContent-Length: 7\r\n\r\n"), 7);
    request_ops.method = MK_STR("HEAD");
    assert_int_equal(length_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 5);
    assert_int_equal(length_of("HTTP/1.1 200 OK\r\n\r\n"), MK_LENGTH_UNKNOWN);
    request_ops.method = MK_STR("GET");
}

static void response_header_is_found_by_name(void **state)
{
    struct call call;
    mk_str name, value;
    (void)state;
    begin(&call,
          MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a\r\nset-cookie: b\r\nEmpty:\r\n\r\n"));
    assert_str(mk_upstream_request_header(call.client, MK_STR("SET-COOKIE")), "a");
    assert_str(mk_upstream_request_header(call.client, MK_STR("empty")), "");
    assert_null(mk_upstream_request_header(call.client, MK_STR("Content-Length")).p);
    assert_null(mk_upstream_request_header(call.client, MK_STR("X")).p);
    assert_true(mk_upstream_request_header_at(call.client, 1, &name, &value));
    assert_str(name, "set-cookie");
    assert_false(mk_upstream_request_header_at(call.client, 3, &name, &value));
    assert_false(mk_upstream_request_trailer_at(call.client, 0, &name, &value));
    assert_false(mk_upstream_request_is_upgraded(call.client));
    assert_false(mk_upstream_request_is_local_redirect(call.client));
    call_fini(&call);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE); /* the caller has not read the body */
}

static void expect_whole(const char *in, const char *content)
{
    struct call call;
    mk_str whole;
    begin(&call, mk_str_from_c(in));
    assert_int_equal(mk_upstream_request_buffered_body(call.client, &whole), content != NULL);
    if (content) {
        assert_str(whole, content);
        assert_true(fake.links[0].is_released);
        assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_KEEP);
        assert_int_equal(mk_upstream_request_read(call.client, (char[1]){0}, 1), 0);
        assert_false(mk_upstream_request_buffered_body(call.client, &whole));
    }
    call_fini(&call);
}

static void response_small_body_is_available_with_head(void **state)
{
    (void)state;
    expect_whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello");
    expect_whole("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", NULL);
    expect_whole("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", NULL);
    expect_whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", NULL);
    expect_whole("HTTP/1.1 200 OK\r\n\r\nhello", NULL);
}

/* The normal form does not depend on the spelling of the header fields. */
static void response_header_lines_are_normalized(void **state)
{
    struct call call;
    mk_str text;
    size_t n;
    (void)state;
    begin(&call, MK_STR("HTTP/1.1 200 OK\r\nA: b\r\nC:d\r\nConnection: keep-alive\r\nE:\t f \r\nG: \r\n"
                        "H:\r\nContent-Length: 5\r\nI: j\r\nK: l\r\n\r\n"));
    assert_non_null(mk_upstream_request_headers(call.client, &text, &n));
    assert_int_equal(n, 7);
    assert_str(text, "A: b\r\nC: d\r\nE: f\r\nG: \r\nH: \r\nI: j\r\nK: l\r\n");
    call_fini(&call);
}

static void response_without_body_releases_connection_at_once(void **state)
{
    struct call call;
    (void)state;
    begin(&call, MK_STR("HTTP/1.1 204 \r\n\r\n"));
    assert_true(fake.links[0].is_released);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_KEEP);
    call_fini(&call);
}

static void response_trailers_are_available_when_complete(void **state)
{
    struct call call;
    mk_str name, value;
    (void)state;
    begin(&call, MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n"));
    call.is_paused = false;
    call_go(&call);
    assert_int_equal(call.end, -EAGAIN);
    assert_false(mk_upstream_request_trailer_at(call.client, 0, &name, &value));
    call_fini(&call);
}

static void request_errors_map_to_statuses(void **state)
{
    (void)state;
    assert_int_equal(mk_upstream_status_for_error(-ECONNREFUSED), 502);
    assert_int_equal(mk_upstream_status_for_error(-ECONNRESET), 502);
    assert_int_equal(mk_upstream_status_for_error(-EPROTO), 502);
    assert_int_equal(mk_upstream_status_for_error(-EPROTO), 502);
    assert_int_equal(mk_upstream_status_for_error(-EHOSTUNREACH), 503);
    assert_int_equal(mk_upstream_status_for_error(-EBUSY), 503);
    assert_int_equal(mk_upstream_status_for_error(-ENOMEM), 503);
    assert_int_equal(mk_upstream_status_for_error(-EMFILE), 503);
    assert_int_equal(mk_upstream_status_for_error(-ETIMEDOUT), 504);
    assert_int_equal(mk_upstream_status_for_error(-EBADMSG), 400);
    assert_int_equal(mk_upstream_status_for_error(-EMSGSIZE), 413);
    assert_int_equal(mk_upstream_status_for_error(-E2BIG), 431);
    assert_int_equal(mk_upstream_status_for_error(-EINVAL), 500);
    assert_int_equal(mk_upstream_status_for_error(-ENOSPC), 500);
}

/* ---- Limits ---- */

static int error_of(mk_str in, size_t size)
{
    struct call call;
    fake_init();
    call_init(&call);
    fake_add(in, -EAGAIN)->is_gradual = true;
    call_run(&call, size, size);
    int head = call.head;
    call_fini(&call);
    return head;
}

static void response_head_has_size_limits(void **state)
{
    static char text[64 * 1024];
    struct mk_buf lines = mk_buf_growing(1 << 16);
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    assert_int_equal(error_of(mk_str_of(text, sizeof text), 1000), -EPROTO);
    assert_int_equal(error_of(mk_str_of(text, sizeof text), sizeof text), -EPROTO);
    memcpy(text + 20000, "\r\nContent-Length: 0\r\n\r\n", 23);
    assert_int_equal(error_of(mk_str_of(text, 20023), 100), 0);
    mk_buf_add(&lines, MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"));
    for (int i = 0; i < 99; i++)
        mk_buf_add(&lines, MK_STR("A: b\r\n"));
    size_t len = lines.len;
    mk_buf_add(&lines, MK_STR("\r\n"));
    assert_int_equal(error_of(mk_buf_str(&lines), 1000), 0);
    lines.len = len;
    mk_buf_add(&lines, MK_STR("A: b\r\n\r\n"));
    assert_int_equal(error_of(mk_buf_str(&lines), 1000), -EPROTO);
    mk_buf_free(&lines);
}

/* Another read would be a system call that returns no data. */
static void response_short_read_of_drained_stream_is_not_repeated(void **state)
{
    (void)state;
    struct call call;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l =
        fake_add(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), -EAGAIN);
    l->is_gradual = true;
    call_start(&call);
    call_go(&call);
    assert_int_equal(l->n_reads, 0);
    fake_arrive(l, l->in.len - 2);
    call_settle(&call);
    call_go(&call);
    assert_int_equal(call.end, -EAGAIN);
    assert_int_equal(l->n_reads, 1);
    fake_arrive(l, 2);
    call_settle(&call);
    assert_int_equal(l->n_reads, 2);
    assert_str(mk_buf_str(&call.body), "hello");
    call_fini(&call);
}

/* The rest of the body fits the buffer exactly, with and without a byte after it. */
static void response_small_rest_is_read_once(void **state)
{
    (void)state;
    for (size_t behind = 0; behind < 2; behind++) {
        struct call call;
        fake_init();
        call_init(&call);
        struct mk_upstream_conn *l = fake_add(
            mk_str_first(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!"), 43 + behind), -EAGAIN);
        l->is_gradual = true;
        call.read_size = 5;
        call_start(&call);
        fake_arrive(l, 38);
        call_settle(&call);
        fake_arrive(l, SIZE_MAX);
        call_settle(&call);
        assert_str(mk_buf_str(&call.body), "hello");
        assert_int_equal(l->n_reads, 2);
        assert_int_equal(l->how, behind ? MK_UPSTREAM_CONN_CLOSE : MK_UPSTREAM_CONN_KEEP);
        call_fini(&call);
    }
}

/* A single event announces several TLS records. */
static void response_short_read_is_repeated_while_stream_has_data(void **state)
{
    struct call call;
    (void)state;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l =
        fake_add(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), -EAGAIN);
    l->is_gradual = true;
    l->record = 4;
    call_start(&call);
    fake_arrive(l, l->in.len - 1);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "hell");
    unsigned before = l->n_reads;
    call_go(&call);
    assert_int_equal(l->n_reads, before); /* no more data is buffered */
    fake_arrive(l, 1);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "hello");
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    call_fini(&call);
}

/* One event may announce the last bytes and the end. */
static void response_eof_is_read_after_short_read(void **state)
{
    struct call call;
    (void)state;
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(MK_STR("HTTP/1.1 200 OK\r\n\r\nhello"), 0);
    l->is_gradual = true;
    call_start(&call);
    l->arrived = l->in.len + 1;
    fake_happen(l, MK_READABLE | MK_ENDED);
    call_settle(&call);
    assert_str(mk_buf_str(&call.body), "hello");
    assert_int_equal(call.end, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    call_fini(&call);
}

/* Large bodies are read directly into the caller's buffer. */
static void response_large_body_needs_few_reads(void **state)
{
    struct mk_buf text = mk_buf_growing(1 << 20);
    static char piece[200000];
    struct call call;
    (void)state;
    for (size_t i = 0; i < sizeof piece; i++)
        piece[i] = (char)(i * 7 / 3);
    mk_buf_add(&text, MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"));
    mk_buf_add(&text, mk_str_of(piece, sizeof piece));
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(mk_buf_str(&text), -EAGAIN);
    call.read_size = CALL_READ_MAX;
    call_start(&call);
    call_settle(&call);
    assert_true(mk_str_eq(mk_buf_str(&call.body), mk_str_of(piece, sizeof piece)));
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(l->n_reads, 5); /* reads of 8 KB with the head, then 56, 64 and 64 KB, and the rest */
    assert_int_equal(l->n_writes, 1);
    call_fini(&call);
    mk_buf_free(&text);
}

/* A server that floods us with bytes outside the body does not block the loop. */
static void response_flood_of_useless_bytes_yields(void **state)
{
    struct mk_buf text = mk_buf_growing(1 << 14);
    struct call call;
    (void)state;
    mk_buf_add(&text, MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"));
    for (int i = 0; i < 8000; i++)
        mk_buf_add_char(&text, 'x');
    mk_buf_add(&text, MK_STR("\r\na\r\n0\r\n\r\n"));
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(mk_buf_str(&text), -EAGAIN);
    l->is_gradual = true;
    call.read_size = 2;
    call_start(&call);
    fake_arrive(l, 100);
    call_settle(&call);
    l->n_reads = 0;
    fake_arrive(l, SIZE_MAX);
    call_go(&call);
    assert_int_equal(call.end, -EAGAIN);
    assert_in_range(l->n_reads, 64, 70);
    call_settle(&call);
    assert_int_equal(call.end, 0);
    assert_str(mk_buf_str(&call.body), "a");
    call_fini(&call);
    mk_buf_free(&text);
}

/* A handler needs no callback that only resumes its request. */
static void request_with_request_to_resume_needs_no_callback(void **state)
{
    (void)state;
    struct call call;
    static const mk_str text = MK_STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    fake_init();
    call_init(&call);
    struct mk_upstream_conn *l = fake_add(text, -EAGAIN);
    l->is_gradual = true;
    call.ask.method = MK_STR("GET");
    call.ask.resumes = (struct mk_request *)&call; /* the pointer is passed on, but not used */
    struct mk_upstream_request *c = mk_upstream_request_start(NULL, &call.ask, NULL, &call);
    assert_int_equal(mk_upstream_request_head(c), -EAGAIN);
    assert_int_equal(fake.n_resumed, 0);
    assert_true(fake_arrive(l, text.len));
    assert_int_equal(fake.n_resumed, 1);
    assert_int_equal(mk_upstream_request_head(c), 0);
    mk_upstream_request_free(c);
    call.client = NULL;
    call_fini(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(response_with_content_length_is_parsed),
        cmocka_unit_test(response_chunked_body_is_decoded),
        cmocka_unit_test(response_without_length_ends_with_connection),
        cmocka_unit_test(response_interim_responses_are_forwarded),
        cmocka_unit_test(response_hop_by_hop_headers_are_removed),
        cmocka_unit_test(response_truncated_is_an_error),
        cmocka_unit_test(response_malformed_is_an_error),
        cmocka_unit_test(response_to_head_has_no_body),
        cmocka_unit_test(response_upgraded_protocol_is_read_raw),
        cmocka_unit_test(response_followed_by_bytes_closes_connection),
        cmocka_unit_test(response_followed_by_eof_closes_connection),
        cmocka_unit_test(response_length_comes_from_content_length),
        cmocka_unit_test(response_header_is_found_by_name),
        cmocka_unit_test(request_errors_map_to_statuses),
        cmocka_unit_test(response_head_has_size_limits),
        cmocka_unit_test(response_body_and_eof_in_one_event),
        cmocka_unit_test(response_small_body_is_available_with_head),
        cmocka_unit_test(response_header_lines_are_normalized),
        cmocka_unit_test(response_without_body_releases_connection_at_once),
        cmocka_unit_test(response_trailers_are_available_when_complete),
        cmocka_unit_test(response_small_rest_is_read_once),
        cmocka_unit_test(response_short_read_of_drained_stream_is_not_repeated),
        cmocka_unit_test(response_short_read_is_repeated_while_stream_has_data),
        cmocka_unit_test(response_eof_is_read_after_short_read),
        cmocka_unit_test(response_large_body_needs_few_reads),
        cmocka_unit_test(response_flood_of_useless_bytes_yields),
        cmocka_unit_test(request_with_request_to_resume_needs_no_callback),
    };
    request_ops.method = MK_STR("GET");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
