/* SPDX-License-Identifier: Apache-2.0 */
#include "http2frame/h2_frame.h"
#include "unit/test.h"

static struct mk_buf out;
static char buffer[256];

static void setup(void)
{
    out = mk_buf_fixed(buffer, sizeof buffer);
}

static void expect_out(const char *bytes, size_t len)
{
    assert_false(out.failed);
    assert_int_equal(out.len, len);
    assert_memory_equal(out.p, bytes, len);
    mk_buf_clear(&out);
}

/* ---- Frame headers ---- */

static void h2_frame_header_round_trips(void **state)
{
    (void)state;
    static const struct mk_h2_frame frames[] = {
        {0, 0, 0, 0},
        {16384, MK_H2_DATA, MK_H2_END_STREAM, 1},
        {0xffffff, 0xff, 0xff, MK_H2_STREAM_MAX},
        {0x010203, MK_H2_HEADERS, 0x2d, 0x01020304},
    };
    for (size_t i = 0; i < MK_LEN(frames); i++) {
        const struct mk_h2_frame *f = &frames[i];
        mk_h2_frame_emit_head(&out, f->length, (enum mk_h2_type)f->type, f->flags, f->stream);
        assert_int_equal(out.len, MK_H2_FRAME_HEAD);
        struct mk_h2_frame got = mk_h2_frame_parse(mk_buf_str(&out));
        assert_int_equal(got.length, f->length);
        assert_int_equal(got.type, f->type);
        assert_int_equal(got.flags, f->flags);
        assert_int_equal(got.stream, f->stream);
        mk_buf_clear(&out);
    }
    struct mk_h2_frame reserved = mk_h2_frame_parse(MK_STR("\0\0\0\0\0\xff\xff\xff\xff"));
    assert_int_equal(reserved.stream, MK_H2_STREAM_MAX); /* the reserved bit is ignored */
}

static enum mk_h2_error check(unsigned type, unsigned flags, uint32_t stream, uint32_t length)
{
    const struct mk_h2_frame f = {length, (uint8_t)type, (uint8_t)flags, stream};
    return mk_h2_frame_check(&f);
}

static void h2_frame_stream_id_is_checked_by_type(void **state)
{
    (void)state;
    static const struct {
        enum mk_h2_type type;
        bool on_stream, on_connection;
        uint32_t length;
    } places[] = {
        {MK_H2_DATA, true, false, 5},
        {MK_H2_HEADERS, true, false, 5},
        {MK_H2_PRIORITY, true, false, 5},
        {MK_H2_RST_STREAM, true, false, 4},
        {MK_H2_SETTINGS, false, true, 6},
        {MK_H2_PUSH_PROMISE, false, false, 5},
        {MK_H2_PING, false, true, 8},
        {MK_H2_GOAWAY, false, true, 8},
        {MK_H2_WINDOW_UPDATE, true, true, 4},
        {MK_H2_CONTINUATION, true, false, 5},
        {MK_H2_PRIORITY_UPDATE, false, true, 4},
    };
    for (size_t i = 0; i < MK_LEN(places); i++) {
        enum mk_h2_error on_stream = check(places[i].type, 0, 1, places[i].length),
                         on_connection = check(places[i].type, 0, 0, places[i].length);
        assert_int_equal(on_stream, places[i].on_stream ? MK_H2_NO_ERROR : MK_H2_PROTOCOL_ERROR);
        assert_int_equal(on_connection, places[i].on_connection ? MK_H2_NO_ERROR : MK_H2_PROTOCOL_ERROR);
    }
}

static void h2_frame_length_is_checked_by_type(void **state)
{
    (void)state;
    static const struct {
        enum mk_h2_type type;
        unsigned flags;
        uint32_t stream, good[3], bad[3];
    } sizes[] = {
        {MK_H2_DATA, 0, 1, {0, 1, 16384}, {16385, 16385, 0xffffff}},
        {MK_H2_PRIORITY, 0, 1, {5, 5, 5}, {0, 4, 6}},
        {MK_H2_RST_STREAM, 0, 1, {4, 4, 4}, {0, 3, 5}},
        {MK_H2_SETTINGS, 0, 0, {0, 6, 16380}, {1, 5, 7}},
        {MK_H2_SETTINGS, MK_H2_ACK, 0, {0, 0, 0}, {1, 6, 12}},
        {MK_H2_PING, 0, 0, {8, 8, 8}, {0, 7, 9}},
        {MK_H2_PING, MK_H2_ACK, 0, {8, 8, 8}, {0, 7, 9}},
        {MK_H2_GOAWAY, 0, 0, {8, 9, 16384}, {0, 7, 16385}},
        {MK_H2_WINDOW_UPDATE, 0, 0, {4, 4, 4}, {0, 3, 5}},
        {MK_H2_PRIORITY_UPDATE, 0, 0, {4, 5, 100}, {0, 1, 3}},
    };
    for (size_t i = 0; i < MK_LEN(sizes); i++)
        for (size_t n = 0; n < 3; n++) {
            enum mk_h2_error good = check(sizes[i].type, sizes[i].flags, sizes[i].stream, sizes[i].good[n]),
                             bad = check(sizes[i].type, sizes[i].flags, sizes[i].stream, sizes[i].bad[n]);
            assert_int_equal(good, MK_H2_NO_ERROR);
            assert_int_equal(bad, MK_H2_FRAME_SIZE_ERROR);
        }
}

static void h2_frame_unknown_types_are_accepted(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        bool known = type <= MK_H2_CONTINUATION || type == MK_H2_PRIORITY_UPDATE;
        for (uint32_t stream = 0; !known && stream < 3; stream++) {
            assert_int_equal(check(type, 0xff, stream, 0), MK_H2_NO_ERROR);
            assert_int_equal(check(type, 0xff, stream, 16384), MK_H2_NO_ERROR);
            assert_int_equal(check(type, 0xff, stream, 16385), MK_H2_FRAME_SIZE_ERROR);
        }
    }
}

/* ---- Payloads ---- */

static bool unpad(unsigned type, unsigned flags, mk_str *payload)
{
    const struct mk_h2_frame f = {(uint32_t)payload->len, (uint8_t)type, (uint8_t)flags, 1};
    return mk_h2_frame_unpad(&f, payload);
}

static void h2_frame_padding_is_removed(void **state)
{
    (void)state;
    static const struct {
        unsigned type, flags;
        mk_str payload;
        const char *left; /* NULL: the padding exceeds the frame */
    } cases[] = {
        {MK_H2_DATA, 0, MK_STR_INIT("data"), "data"},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\0data"), "data"},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\2dataxx"), "data"},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\4dada"), ""},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\0"), ""},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\5dada"), NULL},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT("\xff"), NULL},
        {MK_H2_DATA, MK_H2_PADDED, MK_STR_INIT(""), NULL},
        {MK_H2_DATA, MK_H2_WITH_PRIORITY, MK_STR_INIT("data"), "data"},
        {MK_H2_HEADERS, 0, MK_STR_INIT("block"), "block"},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY, MK_STR_INIT("12345block"), "block"},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY, MK_STR_INIT("12345"), ""},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY, MK_STR_INIT("1234"), NULL},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY | MK_H2_PADDED,
         MK_STR_INIT("\1"
                     "12345blockx"),
         "block"},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY | MK_H2_PADDED,
         MK_STR_INIT("\1"
                     "12345"),
         NULL},
        {MK_H2_HEADERS, MK_H2_WITH_PRIORITY | MK_H2_PADDED,
         MK_STR_INIT("\1"
                     "1234"),
         NULL},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        mk_str left = cases[i].payload;
        assert_int_equal(unpad(cases[i].type, cases[i].flags, &left), cases[i].left != NULL);
        if (cases[i].left)
            assert_str(left, cases[i].left);
    }
}

static void h2_frame_settings_are_parsed(void **state)
{
    (void)state;
    unsigned id;
    uint32_t value;
    mk_str payload = MK_STR("\0\1\0\0\x10\0\xff\xff\xff\xff\xff\xff\0\4\0");
    assert_true(mk_h2_frame_next_setting(&payload, &id, &value));
    assert_int_equal(id, MK_H2_HEADER_TABLE_SIZE);
    assert_int_equal(value, 4096);
    assert_true(mk_h2_frame_next_setting(&payload, &id, &value));
    assert_int_equal(id, 0xffff);
    assert_int_equal(value, 0xffffffff);
    assert_false(mk_h2_frame_next_setting(&payload, &id, &value));
    assert_int_equal(mk_h2_frame_read_u32(MK_STR("\1\2\3\xff")), 0x010203ff);
}

/* ---- Writing ---- */

#define EXPECT_OUT(bytes) expect_out(bytes, sizeof(bytes) - 1)

static void h2_frame_control_frames_are_encoded(void **state)
{
    (void)state;
    mk_h2_frame_emit_goaway(&out, 7, MK_H2_ENHANCE_YOUR_CALM);
    EXPECT_OUT("\0\0\x08\x07\0\0\0\0\0\0\0\0\x07\0\0\0\x0b");
    mk_h2_frame_emit_rst_stream(&out, 3, MK_H2_CANCEL);
    EXPECT_OUT("\0\0\x04\x03\0\0\0\0\3\0\0\0\x08");
    mk_h2_frame_emit_window_update(&out, 0x7fffffff, 0x01020304);
    EXPECT_OUT("\0\0\x04\x08\0\x7f\xff\xff\xff\1\2\3\4");
    mk_h2_frame_emit_ping(&out, true, MK_STR("12345678"));
    EXPECT_OUT("\0\0\x08\x06\1\0\0\0\0"
               "12345678");
    mk_h2_frame_emit_ping(&out, false, MK_STR("12345678"));
    EXPECT_OUT("\0\0\x08\x06\0\0\0\0\0"
               "12345678");
    mk_h2_frame_emit_setting(&out, MK_H2_MAX_CONCURRENT_STREAMS, 100);
    EXPECT_OUT("\0\3\0\0\0\x64");
}

static void h2_frame_buffer_overflow_is_reported(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < 17; cap++) {
        struct mk_buf small = mk_buf_fixed(buffer, cap);
        mk_h2_frame_emit_ping(&small, false, MK_STR("12345678"));
        assert_true(small.failed);
        assert_true(small.len <= cap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_frame_header_round_trips, setup),
        fixture_test(h2_frame_stream_id_is_checked_by_type, setup),
        fixture_test(h2_frame_length_is_checked_by_type, setup),
        fixture_test(h2_frame_unknown_types_are_accepted, setup),
        fixture_test(h2_frame_padding_is_removed, setup),
        fixture_test(h2_frame_settings_are_parsed, setup),
        fixture_test(h2_frame_control_frames_are_encoded, setup),
        fixture_test(h2_frame_buffer_overflow_is_reported, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
