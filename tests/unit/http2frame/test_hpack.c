/* SPDX-License-Identifier: Apache-2.0 */
/* HPACK decoding: the examples of RFC 7541, appendix C, and errors that fail the connection. */

#include "unit/http2frame/hpack_case.h"
#include "unit/test.h"

static struct mk_hpack_decoder *h;
static struct hpack_lines lines;
static char bytes[HPACK_CASE_BYTES];

static void setup(void)
{
    h = mk_hpack_decoder_new();
    assert_non_null(h);
}

static void teardown(void)
{
    mk_hpack_decoder_free(h);
    h = NULL;
}

static mk_err decode(const char *hex)
{
    return hpack_decode(h, hpack_bytes(hex, bytes), &lines);
}

static void expect(const char *hex, const char *text)
{
    assert_int_equal(decode(hex), 0);
    assert_str(mk_buf_str(&lines.text), text);
}

static void hpack_decodes_each_representation(void **state)
{
    (void)state;
    expect("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n");
    expect("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n");
    expect("82", ":method: GET\n");
    assert_int_equal(decode("be"), -EBADMSG); /* none of the fields was added to the table */
}

static void hpack_literal_with_indexing_is_added(void **state)
{
    (void)state;
    expect("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header\n");
    expect("be", "custom-key: custom-header\n");
}

#define FIRST_REQUEST  ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define SECOND_REQUEST FIRST_REQUEST "cache-control: no-cache\n"
#define THIRD_REQUEST                                                                                        \
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n"                        \
    "custom-key: custom-value\n"
#define AFTER_REQUESTS "custom-key: custom-value\ncache-control: no-cache\n:authority: www.example.com\n"

static void hpack_decodes_request_examples(void **state)
{
    (void)state;
    expect("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST_REQUEST);
    expect("8286 84be 5808 6e6f 2d63 6163 6865", SECOND_REQUEST);
    expect("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD_REQUEST);
    expect("be bf c0", AFTER_REQUESTS);
    assert_int_equal(decode("c1"), -EBADMSG);
}

static void hpack_decodes_huffman_request_examples(void **state)
{
    (void)state;
    expect("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST_REQUEST);
    expect("8286 84be 5886 a8eb 1064 9cbf", SECOND_REQUEST);
    expect("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD_REQUEST);
    expect("be bf c0", AFTER_REQUESTS);
    assert_int_equal(decode("c1"), -EBADMSG);
}

/* The examples assume a table of 256 bytes. */
#define SMALL_TABLE "3fe101"

#define COOKIE "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
#define REST_OF_ANSWER                                                                                       \
    "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com\n"
#define THIRD_ANSWER                                                                                         \
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"                            \
    "location: https://www.example.com\ncontent-encoding: gzip\nset-cookie: " COOKIE "\n"
#define AFTER_ANSWERS "set-cookie: " COOKIE "\ncontent-encoding: gzip\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"

static void hpack_decodes_response_examples_with_eviction(void **state)
{
    (void)state;
    expect(SMALL_TABLE "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032"
                       "303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63"
                       "6f6d",
           ":status: 302\n" REST_OF_ANSWER);
    expect("4803 3330 37c1 c0bf", ":status: 307\n" REST_OF_ANSWER);
    expect("88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a"
           "6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d"
           "6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
           THIRD_ANSWER);
    expect("be bf c0", AFTER_ANSWERS);
    assert_int_equal(decode("c1"), -EBADMSG);
}

static void hpack_decodes_huffman_response_examples(void **state)
{
    (void)state;
    expect(SMALL_TABLE "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b"
                       "ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
           ":status: 302\n" REST_OF_ANSWER);
    expect("4883 640e ffc1 c0bf", ":status: 307\n" REST_OF_ANSWER);
    expect("88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d"
           "d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106"
           "3d50 07",
           THIRD_ANSWER);
    expect("be bf c0", AFTER_ANSWERS);
    assert_int_equal(decode("c1"), -EBADMSG);
}

static void hpack_table_size_updates(void **state)
{
    (void)state;
    expect("", "");
    expect("4001 6101 62", "a: b\n");
    expect("3fe1 1f be", "a: b\n"); /* 4096 is the current size */
    expect("20 3fe1 1f", "");       /* shrinking to 0 and growing again empties the table */
    assert_int_equal(decode("be"), -EBADMSG);
}

static void hpack_field_larger_than_table_empties_it(void **state)
{
    (void)state;
    expect("4001 6101 62", "a: b\n");
    expect("22 4001 6301 64", "c: d\n");
    assert_int_equal(decode("be"), -EBADMSG);
}

struct malformed {
    const char *what, *hex;
};

static const struct malformed malformed[] = {
    {"the index 0", "80"},
    {"an index beyond both tables", "be"},
    {"an index far beyond", "ffff7f"},
    {"a name with an index beyond both tables", "7e0161"},
    {"a number without its end", "ff"},
    {"an incomplete number", "ff80"},
    {"a number too large for 32 bits", "ffffffffff7f"},
    {"a number too large for 64 bits", "ffffffffffffffffffff7f"},
    {"a number of many zeros", "ff808080808080808080808001"},
    {"a length too large for 64 bits", "007fffffffffffffffffff7f"},
    {"nothing behind a literal", "40"},
    {"nothing behind a literal without indexing", "00"},
    {"nothing behind a literal never indexed", "10"},
    {"a name shorter than its length", "400a6375"},
    {"no value", "400161"},
    {"a value shorter than its length", "4001610562"},
    {"a value of half a code", "40016181ff"},
    {"padding of zeros", "0081180162"},
    {"padding of a whole byte", "00821fff0162"},
    {"the end of strings as a character", "0084ffffffff0162"},
    {"a code that stops in the middle", "0085ffffffff7f0162"},
    {"a table of 4097 bytes", "3fe21f"},
    {"a table of 2^32 bytes", "3fe1ffffff0f"},
    {"a table whose size does not end", "3f"},
    {"a table's size behind a field", "8220"},
    {"a table's size behind a literal", "40016101623fe11f"},
};

static void hpack_rejects_malformed_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(malformed); i++) {
        struct mk_hpack_decoder *mine = mk_hpack_decoder_new();
        assert_non_null(mine);
        if (hpack_decode(mine, hpack_bytes(malformed[i].hex, bytes), &lines) != -EBADMSG)
            fail_msg("%s was accepted", malformed[i].what);
        mk_hpack_decoder_free(mine);
    }
}

/* A short block could decode to a long list: the output is bounded by the size of the input. */
static void hpack_output_is_bounded(void **state)
{
    (void)state;
    char block[HPACK_CASE_BYTES];
    memset(block, 0x82, sizeof block);
    hpack_lines_init(&lines);
    lines.wanted = 10;
    assert_int_equal(mk_hpack_decode(h, mk_str_of(block, sizeof block), hpack_take, &lines), -ECANCELED);
    assert_int_equal(lines.n, 10);
}

static void hpack_refusing_callback_is_not_called_again(void **state)
{
    (void)state;
    hpack_lines_init(&lines);
    lines.wanted = 1;
    mk_str block = hpack_bytes("4001 6101 62 4001 6301 64 4001 6501 66", bytes);
    assert_int_equal(mk_hpack_decode(h, block, hpack_take, &lines), -ECANCELED);
    assert_str(mk_buf_str(&lines.text), "a: b\n");
    expect("be bf c0", "e: f\nc: d\na: b\n");
}

static void hpack_refused_block_may_be_malformed(void **state)
{
    (void)state;
    hpack_lines_init(&lines);
    lines.wanted = 0;
    assert_int_equal(mk_hpack_decode(h, hpack_bytes("82 84 80", bytes), hpack_take, &lines), -EBADMSG);
    assert_int_equal(lines.n, 0);
}

static void hpack_free_accepts_null(void **state)
{
    (void)state;
    mk_hpack_decoder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(hpack_decodes_each_representation, setup, teardown),
        fixture_test(hpack_literal_with_indexing_is_added, setup, teardown),
        fixture_test(hpack_decodes_request_examples, setup, teardown),
        fixture_test(hpack_decodes_huffman_request_examples, setup, teardown),
        fixture_test(hpack_decodes_response_examples_with_eviction, setup, teardown),
        fixture_test(hpack_decodes_huffman_response_examples, setup, teardown),
        fixture_test(hpack_table_size_updates, setup, teardown),
        fixture_test(hpack_field_larger_than_table_empties_it, setup, teardown),
        cmocka_unit_test(hpack_rejects_malformed_blocks),
        fixture_test(hpack_output_is_bounded, setup, teardown),
        fixture_test(hpack_refusing_callback_is_not_called_again, setup, teardown),
        fixture_test(hpack_refused_block_may_be_malformed, setup, teardown),
        cmocka_unit_test(hpack_free_accepts_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
