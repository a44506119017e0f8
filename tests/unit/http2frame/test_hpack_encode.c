/* SPDX-License-Identifier: Apache-2.0 */
/* HPACK encoding: exact bytes, and a round trip through the decoder. */
#include "base/num.h"
#include "unit/http2frame/hpack_case.h"
#include "unit/test.h"

enum { ROOM = 80000 };

static char buffer[ROOM], bytes[HPACK_CASE_BYTES];
static struct mk_buf out;
static struct mk_hpack_decoder *h;

static void setup(void)
{
    out = mk_buf_fixed(buffer, sizeof buffer);
    h = mk_hpack_decoder_new();
}

static void teardown(void)
{
    mk_hpack_decoder_free(h);
    h = NULL;
}

/* Compares the bytes written since the last call. */
static void expect_bytes(const char *hex)
{
    mk_str expected = hpack_bytes(hex, bytes), got = mk_buf_str(&out);
    if (out.failed || !mk_str_eq(got, expected)) {
        for (size_t i = 0; i < got.len && i < 64; i++)
            print_error("%02x ", (unsigned)(unsigned char)got.p[i]);
        fail_msg("is not %s", hex);
    }
    mk_buf_clear(&out);
}

static void emit(const char *name, const char *value)
{
    mk_hpack_encode(&out, mk_str_from_c(name), mk_str_from_c(value));
}

static void hpack_encode_matches_rfc_examples(void **state)
{
    (void)state;
    emit(":path", "/sample/path"); /* RFC 7541, appendix C.2.2 */
    expect_bytes("040c 2f73 616d 706c 652f 7061 7468");
    mk_hpack_encode_never_indexed(&out, MK_STR("password"), MK_STR("secret")); /* C.2.3 */
    expect_bytes("1008 7061 7373 776f 7264 0673 6563 7265 74");
    emit(":method", "GET"); /* C.2.4 */
    expect_bytes("82");
}

static void hpack_encode_status_uses_static_table(void **state)
{
    (void)state;
    static const unsigned known[] = {200, 204, 206, 304, 400, 404, 500};
    for (size_t i = 0; i < MK_LEN(known); i++) {
        mk_hpack_encode_status(&out, known[i]);
        assert_int_equal(out.len, 1);
        assert_int_equal((unsigned char)buffer[0], 0x88 + i);
        mk_buf_clear(&out);
    }
    mk_hpack_encode_status(&out, 431);
    expect_bytes("0803 343331");
    mk_hpack_encode_status(&out, 100);
    expect_bytes("0803 313030");
}

static void hpack_encode_lowers_names(void **state)
{
    (void)state;
    emit("ETag", "x");
    expect_bytes("0f13 0178");
    emit("WWW-Authenticate", "x");
    expect_bytes("0f2e 0178");
    emit("X-Foo_Bar[", "Y");
    expect_bytes("000a 782d666f6f5f6261725b 0159");
    emit("Accept-Encoding", "gzip, deflate");
    expect_bytes("90");
    emit("Accept-Encoding", "gzip");
    expect_bytes("0f01 04677a6970");
}

static void hpack_encode_empty_or_absent_values(void **state)
{
    (void)state;
    emit("Server", "");
    expect_bytes("b6");
    mk_hpack_encode(&out, MK_STR("server"), MK_STR_NULL);
    expect_bytes("b6");
    emit("x", "");
    expect_bytes("000178 00");
    emit(":path", "");
    expect_bytes("0400");
    emit(":status", "");
    expect_bytes("0800");
    emit("accept-encoding", "");
    expect_bytes("0f0100");
    mk_hpack_encode(&out, MK_STR(""), MK_STR("y"));
    expect_bytes("0000 0179");
}

/* The encoder writes a never-indexed field without a table index, even if the static table has it. */
static void hpack_encode_never_indexed(void **state)
{
    (void)state;
    mk_hpack_encode_never_indexed(&out, MK_STR("Set-Cookie"), MK_STR("a=b"));
    expect_bytes("1f28 03613d62");
    mk_hpack_encode_never_indexed(&out, MK_STR(":status"), MK_STR("200"));
    expect_bytes("1803 323030");
    mk_hpack_encode_never_indexed(&out, MK_STR("server"), MK_STR(""));
    expect_bytes("1f27 00");
}

static void hpack_encode_numbers(void **state)
{
    (void)state;
    mk_hpack_encode_num(&out, MK_STR("Content-Length"), 0);
    expect_bytes("0f0d 0130");
    mk_hpack_encode_num(&out, MK_STR("Content-Length"), UINT64_MAX);
    expect_bytes("0f0d 14 3138343436373434303733373039353531363135");
}

static char long_text[70000];

static mk_str long_value(size_t len)
{
    memset(long_text, 'v', sizeof long_text);
    assert_true(len <= sizeof long_text);
    return mk_str_of(long_text, len);
}

/* At these lengths the integer needs another byte (RFC 7541, section 5.1). */
static void hpack_encode_length_prefixes(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *head;
    } cases[] = {
        {126, "0f27 7e"},     {127, "0f27 7f00"},     {128, "0f27 7f01"},       {254, "0f27 7f7f"},
        {255, "0f27 7f8001"}, {16510, "0f27 7fff7f"}, {16511, "0f27 7f808001"}, {60000, "0f27 7fe1d303"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str value = long_value(cases[i].len), head = hpack_bytes(cases[i].head, bytes);
        mk_hpack_encode(&out, MK_STR("server"), value);
        assert_false(out.failed);
        assert_true(mk_str_eq(mk_str_first(mk_buf_str(&out), head.len), head));
        assert_true(mk_str_eq(mk_str_skip(mk_buf_str(&out), head.len), value));
        mk_buf_clear(&out);
        mk_hpack_encode(&out, value, MK_STR("x"));
        assert_int_equal(out.len, 1 + head.len - 2 + value.len + 2);
        mk_buf_clear(&out);
    }
}

static void hpack_encode_without_room_writes_nothing(void **state)
{
    (void)state;
    char small[7];
    out = mk_buf_fixed(small, sizeof small);
    emit("server", "abcd"); /* 2 + 1 + 4 */
    assert_false(out.failed);
    mk_buf_clear(&out);
    emit("server", "abcde");
    assert_true(out.failed);
    assert_int_equal(out.len, 0);
    mk_hpack_encode_status(&out, 200);
    assert_int_equal(out.len, 0);
    mk_buf_clear(&out);
    emit("ab", "cd");
    assert_false(out.failed);
    assert_int_equal(out.len, 7);
    mk_hpack_encode_status(&out, 200);
    assert_true(out.failed);
}

static void expect_back(const char *name, mk_str value)
{
    struct hpack_lines lines;
    mk_buf_clear(&out);
    mk_hpack_encode(&out, mk_str_from_c(name), value);
    mk_hpack_encode_never_indexed(&out, mk_str_from_c(name), value);
    assert_false(out.failed);
    assert_int_equal(hpack_decode(h, mk_buf_str(&out), &lines), 0);
    mk_str line = mk_buf_str(&lines.text);
    assert_int_equal(lines.n, 2);
    assert_int_equal(line.len, 2 * (strlen(name) + 2 + value.len + 1));
    for (int i = 0; i < 2; i++) {
        assert_true(mk_str_eq_nocase(mk_str_first(line, strlen(name)), mk_str_from_c(name)));
        assert_true(mk_str_eq(mk_str_first(mk_str_skip(line, strlen(name) + 2), value.len), value));
        line = mk_str_skip(line, line.len / 2);
    }
}

/* Encodes each name of the static table, in any letter case. */
static void hpack_encode_finds_every_static_name(void **state)
{
    (void)state;
    if (!h)
        skip();
    for (unsigned index = 1; index <= 61; index++) {
        struct hpack_lines lines;
        char block = (char)(0x80 | index), name[40] = "";
        assert_int_equal(hpack_decode(h, mk_str_of(&block, 1), &lines), 0);
        mk_str rest = mk_buf_str(&lines.text);
        size_t len = 1 + mk_str_find(mk_str_skip(rest, 1), ':');
        mk_str value = mk_str_first(mk_str_skip(rest, len + 2), rest.len - len - 3);
        memcpy(name, rest.p, len);
        mk_buf_clear(&out);
        emit(name, "");
        size_t literal = out.len;
        mk_hpack_encode(&out, mk_str_from_c(name), value);
        assert_int_equal(out.len - literal, 1);
        assert_int_equal(buffer[literal], block);
        for (char *c = name; *c; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        expect_back(name, value);
        expect_back(name, MK_STR("something else"));
        /* the encoder has written an index, not the name */
        assert_true(out.len < 2 * (3 + sizeof "something else"));
    }
}

static void hpack_encode_similar_names_are_literals(void **state)
{
    (void)state;
    if (!h)
        skip();
    static const char *const names[] = {"x",      "date2",   "dat",        "dbte",
                                        "agf",    "vib",     "server",     "serwer",
                                        "sErvEr", "lin\x0b", "set-cookif", "content-typE"};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        expect_back(names[i], MK_STR(""));
        expect_back(names[i], MK_STR("value"));
    }
}

static void hpack_encode_long_fields_round_trip(void **state)
{
    (void)state;
    if (!h)
        skip();
    static const size_t lengths_tried[] = {1, 126, 127, 128, 254, 255, 256, 3000};
    for (size_t i = 0; i < MK_LEN(lengths_tried); i++) {
        char name[301];
        memset(name, 'n', sizeof name);
        name[mk_min(lengths_tried[i], 300)] = '\0';
        expect_back(name, long_value(lengths_tried[i]));
        expect_back("content-type", long_value(lengths_tried[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(hpack_encode_matches_rfc_examples, setup, teardown),
        fixture_test(hpack_encode_status_uses_static_table, setup, teardown),
        fixture_test(hpack_encode_lowers_names, setup, teardown),
        fixture_test(hpack_encode_empty_or_absent_values, setup, teardown),
        fixture_test(hpack_encode_never_indexed, setup, teardown),
        fixture_test(hpack_encode_numbers, setup, teardown),
        fixture_test(hpack_encode_length_prefixes, setup, teardown),
        fixture_test(hpack_encode_without_room_writes_nothing, setup, teardown),
        fixture_test(hpack_encode_finds_every_static_name, setup, teardown),
        fixture_test(hpack_encode_similar_names_are_literals, setup, teardown),
        fixture_test(hpack_encode_long_fields_round_trip, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
