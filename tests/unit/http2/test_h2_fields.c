/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields of HTTP/2 responses: heads of any size, trailers, and fields that HTTP/2 does not allow. */
#include <nghttp2/nghttp2.h>

#include "unit/http2/h2_conn_case.h"

/* ---- Heads ---- */

static void h2_fields_long_head_uses_continuation(void **state)
{
    (void)state;
    static const unsigned sizes[] = {16000, 16384, 17000, 33000, 50000, 60000};
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(sizes); i++) {
        char target[64];
        snprintf(target, sizeof target, "/mad?n=%u", sizes[i]);
        h2_conn_get(&h, 1 + 2 * i, target);
    }
    h2_conn_run(&h);
    for (uint32_t i = 0; i < MK_LEN(sizes); i++) {
        h2_conn_expect(&h, 1 + 2 * i, 200, "mad\n");
        assert_true(h2_find(&h.client, 1 + 2 * i)->fields.len > sizes[i]);
    }
    h2_conn_expect_idle(&h);
}

static bool is_whole(uint32_t id, unsigned n)
{
    char target[64];
    snprintf(target, sizeof target, "/mad?n=%u", n);
    h2_conn_get(&h, id, target);
    h2_conn_run(&h);
    bool whole = h2_find(&h.client, id)->status == 200;
    h2_conn_expect(&h, id, whole ? 200 : 500, whole ? "mad\n" : NULL);
    return whole;
}

/* The buffer for the head must also hold the frame headers. */
static void h2_fields_head_at_limit_is_sent(void **state)
{
    (void)state;
    enum { STEP = 400 };
    unsigned n = 60000, n_whole = 0;
    uint32_t id = 1;
    h2_conn_open(&h);
    for (; is_whole(id, n); id += 2)
        n += STEP;
    n -= STEP;
    for (unsigned i = 0; i <= STEP; i += 4) {
        id += 2;
        bool whole = is_whole(id, n + i);
        /* once a head does not fit, no larger head fits */
        assert_true(n_whole == i / 4 || !whole);
        n_whole += whole;
    }
    assert_true(n_whole > 0 && n_whole < STEP / 4);
    h2_conn_expect_idle(&h);
}

static void h2_fields_oversized_head_becomes_500(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/mad?n=1000000");
    h2_conn_get(&h, 3, "/early");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 500, NULL);
    h2_conn_expect(&h, 3, 200, "early\n");
    assert_int_equal(h.conn.statuses[0], 500);
    assert_int_equal(h.conn.statuses[1], 200);
    h2_conn_expect_idle(&h);
}

static enum mk_verdict send_hop_by_hop_headers(struct mk_request *request, struct mk_response *response,
                                               void *data)
{
    static const char *const names[] = {"Connection", "keep-alive", "Transfer-Encoding", "Upgrade",
                                        "Proxy-Connection"};
    (void)request;
    (void)data;
    for (size_t i = 0; i < MK_LEN(names); i++)
        (void)mk_response_add_header_nocopy(response, mk_str_from_c(names[i]), MK_STR("x"));
    (void)mk_response_add_header(response, MK_STR("Set-Cookie"), MK_STR("a=b"));
    (void)mk_response_add_header(response, MK_STR("X-Space"), MK_STR(" \tx y\t "));
    (void)mk_response_add_header(response, MK_STR("X-Empty"), MK_STR(" "));
    return handlers_respond(response, MK_STR("odd\n"));
}

static void h2_fields_hop_by_hop_headers_are_removed(void **state)
{
    (void)state;
    static const struct mk_handler odd = {.name = "odd", .handle = send_hop_by_hop_headers};
    h2_conn_route(&h, &odd);
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/");
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "odd\n");
    assert_contains(mk_buf_str(&h2_find(&h.client, 1)->fields), "set-cookie: a=b\nx-space: x y\nx-empty: \n");
}

/* A decoder without a table rejects a block that does not announce the smaller table size (RFC 7541, section
 * 4.2). */
static void h2_fields_client_without_hpack_table(void **state)
{
    (void)state;
    nghttp2_hd_inflater *inflater;
    h2_conn_open(&h);
    h2_send_setting(&h.client, &h.say, MK_H2_HEADER_TABLE_SIZE, 0);
    h2_conn_run(&h);
    h2_conn_get(&h, 1, "/broken?n=0&unknown=1"); /* the server retracts the head of this response */
    h2_conn_get(&h, 3, "/source?n=10");
    size_t at = h.conn.read;
    h2_conn_run(&h);
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    assert_int_equal(nghttp2_hd_inflate_change_table_size(inflater, 0), 0);
    for (mk_str in = mk_str_skip(mk_buf_str(&h.conn.received), at); in.len;) {
        struct mk_h2_frame f = mk_h2_frame_parse(in);
        mk_str block = mk_str_first(mk_str_skip(in, MK_H2_FRAME_HEAD), f.length);
        for (int flags = 0; f.type == MK_H2_HEADERS && !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
            nghttp2_nv nv;
            ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (const uint8_t *)block.p, block.len, 1);
            if (n < 0)
                fail_msg("%s", nghttp2_strerror((int)n));
            block = mk_str_skip(block, (size_t)n);
        }
        if (f.type == MK_H2_HEADERS)
            nghttp2_hd_inflate_end_headers(inflater);
        in = mk_str_skip(in, MK_H2_FRAME_HEAD + f.length);
    }
    nghttp2_hd_inflate_del(inflater);
    h2_conn_expect(&h, 1, 500, NULL);
    h2_conn_expect(&h, 3, 200, NULL);
}

/* ---- Trailers ---- */

static void h2_fields_trailers_follow_body(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_send_request(&h.client, &h.say, 1, "POST", "/trailers", false, "te: trailers\n");
    h2_send_request(&h.client, &h.say, 3, "POST", "/trailers", false, "");
    for (uint32_t id = 1; id <= 3; id += 2) {
        h2_conn_data(&h, id, "content", false);
        h2_send_headers(&h.client, &h.say, id, MK_H2_END_STREAM, "x-last: one\n");
    }
    h2_conn_run(&h);
    h2_conn_expect(&h, 1, 200, "content");
    assert_true(h2_find(&h.client, 1)->has_trailers);
    assert_contains(mk_buf_str(&h2_find(&h.client, 1)->fields), "x-first: known\nx-last: one\n");
    h2_conn_expect(&h, 3, 200, "content");
    /* the client did not announce that it accepts trailers */
    assert_false(h2_find(&h.client, 3)->has_trailers);
    h2_conn_expect_idle(&h);
}

static enum mk_verdict respond_with_trailers(struct mk_request *request, struct mk_response *response,
                                             void *data)
{
    char *big = mk_request_alloc(request, 40000);
    (void)data;
    if (!big)
        return handlers_refuse(response, 503);
    memset(big, 'b', 40000);
    (void)mk_response_add_trailer(response, MK_STR("X-End"), mk_str_first(mk_str_of(big, 40000), 16000));
    uint64_t n = handlers_number(request, "n", 0);
    return handlers_respond(response, mk_str_of(big, (size_t)n));
}

/* HTTP/2 trailers need no chunked coding. */
static void h2_fields_trailers_with_content_length(void **state)
{
    (void)state;
    static const struct mk_handler handler = {.name = "t", .handle = respond_with_trailers};
    static const char *const targets[] = {"/?n=3", "/?n=20000", "/?n=0", "/?n=16384"};
    h2_conn_route(&h, &handler);
    h2_conn_open(&h);
    for (uint32_t i = 0; i < MK_LEN(targets); i++)
        h2_send_request(&h.client, &h.say, 1 + 2 * i, "GET", targets[i], true, "te: trailers\n");
    h2_send_request(&h.client, &h.say, 11, "HEAD", "/?n=3", true, "te: trailers\n");
    h2_conn_run(&h);
    for (uint32_t i = 0; i < MK_LEN(targets); i++) {
        h2_conn_expect(&h, 1 + 2 * i, 200, NULL);
        if (i != 2)
            assert_true(h2_find(&h.client, 1 + 2 * i)->has_trailers);
    }
    h2_conn_expect(&h, 11, 200, "");
    h2_conn_expect_idle(&h);
}

/* ---- Interim responses ---- */

static void h2_fields_interim_responses_precede_head(void **state)
{
    (void)state;
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/hint?n=3&ms=20");
    h2_conn_get(&h, 3, "/hint?n=1&size=100&ms=5000");
    h2_conn_run(&h);
    assert_int_equal(h2_find(&h.client, 1)->n_interim, 3); /* sent while the handler waits */
    assert_int_equal(h2_find(&h.client, 3)->n_interim, 1);
    while (h.conn.n_records < 1)
        h2_conn_run_for(&h, 10);
    h2_conn_expect(&h, 1, 200, "3\n");
    h2_conn_expect_open(&h, 3);
}

/* The server sends no part of an interim response that does not fit, and the HPACK tables stay in sync. */
static void h2_fields_interim_response_without_room_is_dropped(void **state)
{
    (void)state;
    char text[16];
    h2_conn_open(&h);
    h2_conn_get(&h, 1, "/hint?n=100&size=8000&ms=1");
    h2_conn_run(&h);
    while (h.conn.n_records < 1)
        h2_conn_run_for(&h, 10);
    unsigned n = h2_find(&h.client, 1)->n_interim;
    assert_true(n > 5 && n <= 100);
    snprintf(text, sizeof text, "%u\n", n);
    h2_conn_expect(&h, 1, 200, text);
    h2_conn_expect_idle(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_fields_long_head_uses_continuation, setup),
        fixture_test(h2_fields_head_at_limit_is_sent, setup),
        fixture_test(h2_fields_oversized_head_becomes_500, setup),
        fixture_test(h2_fields_hop_by_hop_headers_are_removed, setup),
        fixture_test(h2_fields_client_without_hpack_table, setup),
        fixture_test(h2_fields_trailers_follow_body, setup),
        fixture_test(h2_fields_trailers_with_content_length, setup),
        fixture_test(h2_fields_interim_responses_precede_head, setup),
        fixture_test(h2_fields_interim_response_without_room_is_dropped, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
