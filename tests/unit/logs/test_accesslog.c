/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/accesslog.h"

#include <stdlib.h>
#include <time.h>

#include "unit/headers.h"
#include "unit/json.h"
#include "unit/test.h"

enum { NOW = 1795250096 }; /* Sat, 21 Nov 2026 08:34:56 GMT */

static const enum mk_access_format formats[] = {MK_ACCESS_COMBINED, MK_ACCESS_JSON, MK_ACCESS_SHORT};

static struct mk_request request;
static struct mk_header_field fields[4];
static struct mk_addr peer;
static struct mk_access_record record;
static struct mk_access_clock clock_text;
static char line[2 * MK_ACCESS_LINE];

static void setup(void)
{
    struct mk_sockaddr a;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_int_equal(mk_sockaddr_parse(MK_STR("192.0.2.1:1234"), MK_STR(""), &a), 0);
    mk_sockaddr_to_addr(&a, &peer);
    memset(&clock_text, 0, sizeof clock_text);
    request = (struct mk_request){.version = 11,
                                  .received.method = MK_METHOD_GET,
                                  .method_text = MK_STR("GET"),
                                  .target_text = MK_STR("/a?b"),
                                  .host = MK_STR("example.org"),
                                  .peer = &peer,
                                  .now = NOW};
    mk_headers_init(&request.fields, fields);
    record =
        (struct mk_access_record){.request = &request, .status = 200, .content_sent = 1234, .duration_ms = 7};
}

static void add_field(const char *name, mk_str value)
{
    assert_true(headers_add(&request.fields, MK_LEN(fields), mk_str_from_c(name), value));
}

static mk_str write_line(enum mk_access_format format)
{
    struct mk_buf out = mk_buf_fixed(line, sizeof line);
    mk_accesslog_write(&out, format, &record, &clock_text);
    assert_false(out.failed);
    assert_true(out.len <= MK_ACCESS_LINE);
    return mk_buf_str(&out);
}

static void check_json(const char *expected)
{
    mk_str text = write_line(MK_ACCESS_JSON);
    assert_true(json_is_object(mk_str_first(text, text.len - 1)));
    assert_str(text, expected);
}

static void accesslog_combined_format(void **state)
{
    (void)state;
    add_field("Referer", MK_STR("https://example.com/"));
    add_field("User-Agent", MK_STR("Mozilla/5.0 (X11)"));
    assert_str(write_line(MK_ACCESS_COMBINED),
               "192.0.2.1 - - [21/Nov/2026:08:34:56 +0000] \"GET /a?b HTTP/1.1\" 200 1234 "
               "\"https://example.com/\" \"Mozilla/5.0 (X11)\"\n");
}

static void accesslog_user_is_one_word(void **state)
{
    struct mk_arena arena;
    char many[255];
    (void)state;
    mk_arena_init(&arena, NULL);
    request.arena = &arena;
    assert_int_equal(mk_request_set_user(&request, MK_STR("j\303\244 \"x\" ")), 0);
    assert_str(write_line(MK_ACCESS_COMBINED), "192.0.2.1 - j\\xc3\\xa4\\x20\\x22x\\x22\\x20 "
                                               "[21/Nov/2026:08:34:56 +0000] \"GET /a?b HTTP/1.1\" 200 1234 "
                                               "\"-\" \"-\"\n");
    check_json(
        "{\"time\":\"2026-11-21T08:34:56+0000\",\"client\":\"192.0.2.1\",\"user\":\"j\303\244 \\\"x\\\" \","
        "\"host\":\"example.org\",\"method\":\"GET\",\"target\":\"/a?b\",\"protocol\":\"HTTP/1.1\","
        "\"status\":200,\"bytes\":1234,\"ms\":7,\"outcome\":\"ok\",\"referer\":\"\",\"agent\":\"\"}\n");
    memset(many, ' ', sizeof many);
    assert_int_equal(mk_request_set_user(&request, mk_str_of(many, sizeof many)), 0);
    assert_true(write_line(MK_ACCESS_COMBINED).len < 400);
    mk_arena_fini(&arena);
}

static void accesslog_missing_values_are_dashes(void **state)
{
    (void)state;
    record.content_sent = 0;
    record.status = 0;
    request.version = 10;
    assert_str(write_line(MK_ACCESS_COMBINED),
               "192.0.2.1 - - [21/Nov/2026:08:34:56 +0000] \"GET /a?b HTTP/1.0\" 499 - \"-\" \"-\"\n");
    request =
        /* the server could not parse this request at all */
        (struct mk_request){.peer = &peer, .now = NOW, .version = 11};
    record.status = 400;
    assert_str(write_line(MK_ACCESS_COMBINED),
               "192.0.2.1 - - [21/Nov/2026:08:34:56 +0000] \"-\" 400 - \"-\" \"-\"\n");
    assert_str(write_line(MK_ACCESS_SHORT), "08:34:56 400 - -  0 bytes to 192.0.2.1\n");
    check_json(
        "{\"time\":\"2026-11-21T08:34:56+0000\",\"client\":\"192.0.2.1\",\"host\":\"\",\"method\":\"\","
        "\"target\":\"\",\"protocol\":\"\",\"status\":400,\"bytes\":0,\"ms\":7,\"outcome\":\"ok\","
        "\"referer\":\"\",\"agent\":\"\"}\n");
}

static void accesslog_json_format(void **state)
{
    (void)state;
    add_field("User-Agent", MK_STR("curl"));
    record.outcome = MK_OUTCOME_FAILED;
    check_json(
        "{\"time\":\"2026-11-21T08:34:56+0000\",\"client\":\"192.0.2.1\",\"host\":\"example.org\","
        "\"method\":\"GET\",\"target\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":1234,"
        "\"ms\":7,\"outcome\":\"failed\",\"referer\":\"\",\"agent\":\"curl\"}\n");
}

static void accesslog_short_format(void **state)
{
    (void)state;
    assert_str(write_line(MK_ACCESS_SHORT), "08:34:56 200 GET /a?b  1234 bytes to 192.0.2.1\n");
    record.duration_ms = 100;
    assert_str(write_line(MK_ACCESS_SHORT), "08:34:56 200 GET /a?b  1234 bytes to 192.0.2.1, 100 ms\n");
}

static void accesslog_time_follows_the_clock(void **state)
{
    (void)state;
    write_line(MK_ACCESS_SHORT);
    request.now++;
    assert_true(mk_str_starts(write_line(MK_ACCESS_SHORT), MK_STR("08:34:57 ")));
    request.now -= 2;
    assert_true(mk_str_starts(write_line(MK_ACCESS_SHORT), MK_STR("08:34:55 ")));
}

static void accesslog_time_is_local(void **state)
{
    (void)state;
    setenv("TZ", "XXX-3:30", 1);
    tzset();
    mk_str text = write_line(MK_ACCESS_COMBINED);
    assert_contains(text, "[21/Nov/2026:12:04:56 +0330]");
}

/* ---- Hostile input ---- */

static const mk_str hostile[] = {
    MK_STR_INIT("\" 200 1 \"x\" \"y\"\n127.0.0.1 - - [now] \"GET /"),
    MK_STR_INIT("\r\n\r\n"),
    MK_STR_INIT("\x1b[2J\x1b]0;title\x07"),
    MK_STR_INIT("\xc2\x9b"
                "2J\xc2\x85"),
    MK_STR_INIT("a\0b"),
    MK_STR_INIT("\\\\\"\\\""),
    MK_STR_INIT("\x7f\x80\xff\xfe"),
    MK_STR_INIT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x92"),
    MK_STR_INIT("\xc0\x80\xe0\x80\x80\xed\xa0\x80\xf4\x90\x80\x80\xf8\x88\x80\x80\x80"),
    MK_STR_INIT("\xc3"),
    MK_STR_INIT("\xe2\x82"),
    MK_STR_INIT("\xf0\x9f\x90"),
    MK_STR_INIT("\",\"status\":200,\"x\":\""),
    MK_STR_INIT("\\u0041\\n\\"),
    MK_STR_INIT("\t\b\f\v"),
};

static void use_everywhere(mk_str text)
{
    setup();
    request.method_text = request.target_text = request.host = text;
    add_field("Referer", text);
    add_field("User-Agent", text);
}

static size_t count(mk_str text, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == c;
    return n;
}

/* Asserts that the entry is one line without terminal control characters, with exactly the quotes of the
 * format. */
static void check_form(enum mk_access_format format)
{
    mk_str text = write_line(format);
    assert_true(text.len > 20 && text.p[text.len - 1] == '\n');
    mk_str body = mk_str_first(text, text.len - 1);
    for (size_t i = 0; i < body.len; i++) {
        unsigned char c = (unsigned char)body.p[i];
        bool is_c1 = c == 0xc2 && i + 1 < body.len && (unsigned char)body.p[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || is_c1 || (c >= 0x80 && format != MK_ACCESS_JSON))
            fail_msg("byte %02x in %.*s", c, MK_STR_ARG(body));
    }
    if (format == MK_ACCESS_JSON && !json_is_object(body))
        fail_msg("no JSON: %.*s", MK_STR_ARG(body));
    if (format == MK_ACCESS_COMBINED) {
        assert_int_equal(count(body, '"'), 6);
        assert_int_equal(body.p[body.len - 1], '"');
    }
}

static void accesslog_hostile_bytes_stay_in_their_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(hostile); i++)
        for (size_t f = 0; f < MK_LEN(formats); f++) {
            use_everywhere(hostile[i]);
            check_form(formats[f]);
        }
}

static void accesslog_every_byte_is_escaped(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'b'};
        for (size_t f = 0; f < MK_LEN(formats); f++) {
            use_everywhere(mk_str_of(text, sizeof text));
            check_form(formats[f]);
        }
    }
}

static void accesslog_escapes_are_reversible(void **state)
{
    (void)state;
    request.target_text = MK_STR("/\"\\\x1b\xff\xc3\xa4");
    mk_str text = write_line(MK_ACCESS_COMBINED);
    assert_contains(text, "GET /\\x22\\x5c\\x1b\\xff\\xc3\\xa4 HTTP/1.1");
    text = write_line(MK_ACCESS_JSON);
    assert_contains(text, "\"target\":\"/\\\"\\\\\\u001b\\u00ff\xc3\xa4\"");
}

static void accesslog_long_texts_are_truncated_within_the_format(void **state)
{
    (void)state;
    static const char *const fillings[] = {"x", "\"", "\n", "\xff", "\xf0\x9f\x90\x92", "\xc2\x80"};
    static char long_target[20000];
    for (size_t i = 0; i < MK_LEN(fillings); i++) {
        size_t len = strlen(fillings[i]);
        for (size_t at = 0; at + len <= sizeof long_target; at += len)
            memcpy(long_target + at, fillings[i], len);
        for (size_t n = 0; n < sizeof long_target; n += n < 700 ? 97 : n < 800 ? 1 : 4999)
            for (size_t f = 0; f < MK_LEN(formats); f++) {
                use_everywhere(mk_str_of(long_target, n));
                request.method_text = mk_str_first(request.method_text, 32);
                check_form(formats[f]);
            }
    }
}

static void accesslog_short_line_needs_a_small_buffer(void **state)
{
    (void)state;
    struct mk_buf out = mk_buf_growing(MK_ACCESS_LINE);
    mk_accesslog_write(&out, MK_ACCESS_COMBINED, &record, &clock_text);
    assert_false(out.failed);
    assert_true(out.cap < 1024);
    mk_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(accesslog_combined_format, setup),
        fixture_test(accesslog_user_is_one_word, setup),
        fixture_test(accesslog_missing_values_are_dashes, setup),
        fixture_test(accesslog_json_format, setup),
        fixture_test(accesslog_short_format, setup),
        fixture_test(accesslog_time_follows_the_clock, setup),
        fixture_test(accesslog_time_is_local, setup),
        fixture_test(accesslog_hostile_bytes_stay_in_their_field, setup),
        fixture_test(accesslog_every_byte_is_escaped, setup),
        fixture_test(accesslog_escapes_are_reversible, setup),
        fixture_test(accesslog_long_texts_are_truncated_within_the_format, setup),
        fixture_test(accesslog_short_line_needs_a_small_buffer, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
