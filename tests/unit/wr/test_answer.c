/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/answer.h"

#include "base/codec.h"
#include "unit/test.h"

static struct wr_answer a;

static void feed(mk_str text, size_t piece)
{
    wr_answer_init(&a);
    for (size_t at = 0; at < text.len; at += piece)
        if (!wr_answer_feed(&a, mk_str_take(mk_str_skip(text, at), piece)))
            return;
    wr_answer_end(&a);
}

/* In pieces of every size: the status and the content "hello world". */
static void expect_hello(mk_str text)
{
    for (size_t piece = 1; piece <= text.len; piece++) {
        char room[2 * MK_SHA1_LEN];
        struct mk_buf hex = mk_buf_fixed(room, sizeof room);
        feed(text, piece);
        assert_int_equal(a.at, WR_ANSWER_DONE);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.length, 11);
        mk_hex_encode(&hex, mk_str_of((const char *)a.sha1, MK_SHA1_LEN));
        assert_str(mk_buf_str(&hex), "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed");
    }
}

static void expect_broken(mk_str text, const char *why)
{
    feed(text, 7);
    assert_int_equal(a.at, WR_ANSWER_BROKEN);
    assert_string_equal(a.why, why);
}

static void content_of_a_known_length(void **state)
{
    (void)state;
    expect_hello(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX: y\r\n\r\nhello world"));
    expect_hello(MK_STR("HTTP/1.1 200 OK\ncontent-length:11\n\nhello worldMORE"));
}

static void content_until_the_end(void **state)
{
    (void)state;
    expect_hello(MK_STR("HTTP/1.0 200\r\n\r\nhello world"));
}

static void content_in_chunks(void **state)
{
    (void)state;
    expect_hello(
        MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\nhello \r\n5\r\nworld\r\n0\r\n"
               "Trailer: a\r\n\r\n"));
}

static void interim_answers_are_passed_over(void **state)
{
    (void)state;
    expect_hello(MK_STR(
        "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"));
}

static void answers_without_content(void **state)
{
    (void)state;
    feed(MK_STR("HTTP/1.1 304 Not Modified\r\nContent-Length: 11\r\n\r\n"), 5);
    assert_int_equal(a.at, WR_ANSWER_DONE);
    assert_int_equal(a.length, 0);
    feed(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 5);
    assert_int_equal(a.at, WR_ANSWER_DONE);
}

static void what_is_broken_is_said_to_be(void **state)
{
    (void)state;
    expect_broken(MK_STR(""), "the server closed the connection without an answer");
    expect_broken(MK_STR("SSH-2.0-x\r\n\r\n"), "it is no answer of HTTP/1.1");
    expect_broken(MK_STR("HTTP/1.1 20 OK\r\n\r\n"), "it is no answer of HTTP/1.1");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello"), "it ends too early");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), "its Content-Length is no number");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"), "its head has a line without a colon");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
                  "its Transfer-Encoding is not \"chunked\"");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
                  "the size of a chunk is no number");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n"),
                  "the size of a chunk is no number");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"),
                  "a chunk is longer than its size");
    expect_broken(MK_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n"), "a chunk has no size");
}

static void a_head_has_an_end(void **state)
{
    (void)state;
    static char endless[WR_ANSWER_HEAD_MAX + 100];
    memset(endless, 'a', sizeof endless);
    expect_broken(mk_str_of(endless, sizeof endless), "its head is too long");
    memcpy(endless, "HTTP/1.1 200 OK\n", 16);
    for (size_t i = 16; i + 4 < sizeof endless; i += 4)
        memcpy(endless + i, "a:b\n", 4);
    expect_broken(mk_str_of(endless, sizeof endless), "its head is too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_of_a_known_length), cmocka_unit_test(content_until_the_end),
        cmocka_unit_test(content_in_chunks),         cmocka_unit_test(interim_answers_are_passed_over),
        cmocka_unit_test(answers_without_content),   cmocka_unit_test(what_is_broken_is_said_to_be),
        cmocka_unit_test(a_head_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
