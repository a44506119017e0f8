/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/h2_head.h"

#include <stdio.h>

#include "http/authority.h"
#include "unit/http2/h2_head_case.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;

static void setup(void)
{
    arena_setup(&arena);
}

#define GET  ":method|GET\n:scheme|https\n:path|/\n"
#define TO_A GET ":authority|a\n"

enum { BAD = MK_H2_HEAD_MALFORMED };

static struct mk_h2_head h;

static int read_head(const char *lines)
{
    return h2head_read(&h, &arena, lines, false);
}

static int read_trailers(const char *lines)
{
    return h2head_read(&h, &arena, lines, true);
}

/* Compares the fields that the layers above the frame layer see. */
static void expect_lines(const char *expected)
{
    char buffer[2048];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    for (unsigned i = 0; i < h.fields.n; i++) {
        const struct mk_header_field *f = &h.fields.at[i];
        assert_int_equal(f->id, mk_header_find_id(f->name));
        assert_in_range(h.fields.first[f->id], 1, i + 1);
        mk_buf_addf(&out, "%.*s|%.*s\n", MK_STR_ARG(f->name), MK_STR_ARG(f->value));
    }
    assert_false(out.failed);
    assert_str(mk_buf_str(&out), expected);
}

static void h2_head_request_is_parsed(void **state)
{
    (void)state;
    assert_int_equal(read_head(":method|GET\n:scheme|https\n:authority|example.org:8443\n:path|/x?y\n"
                               "user-agent|me\naccept|*/*\n"),
                     0);
    assert_int_equal(h.method, MK_METHOD_GET);
    assert_str(h.method_text, "GET");
    assert_str(h.scheme, "https");
    assert_str(h.authority, "example.org:8443");
    assert_str(h.path, "/x?y");
    assert_null(h.protocol.p);
    assert_str(h.host, "example.org");
    assert_int_equal(h.port, 8443);
    assert_false(h.has_length);
    assert_false(h.expects_continue);
    expect_lines("host|example.org:8443\nuser-agent|me\naccept|*/*\n");
    assert_str(mk_headers_get(&h.fields, MK_HEADER_HOST), "example.org:8443");
    assert_str(mk_headers_find(&h.fields, MK_STR("User-Agent")), "me");
}

static void h2_head_pseudo_headers_may_have_any_order(void **state)
{
    (void)state;
    assert_int_equal(read_head(":path|/\n:authority|a\n:scheme|http\n:method|GET\n"), 0);
    expect_lines("host|a\n");
    assert_int_equal(h.port, MK_PORT_NONE);
}

static void h2_head_methods_are_recognized(void **state)
{
    (void)state;
    const char *rest = ":scheme|http\n:path|/\n:authority|a\n";
    char text[256];
    static const struct {
        const char *method;
        int status;
        enum mk_method known;
    } cases[] = {
        {"POST", 0, MK_METHOD_POST},
        {"get", 0, MK_METHOD_UNKNOWN},
        {"BREW", 0, MK_METHOD_UNKNOWN},
        {"", BAD, 0},
        {"G T", BAD, 0},
        {"G\xc3\xa9T", BAD, 0},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF", 0, MK_METHOD_UNKNOWN},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", 501, MK_METHOD_UNKNOWN},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        snprintf(text, sizeof text, ":method|%s\n%s", cases[i].method, rest);
        assert_int_equal(read_head(text), cases[i].status);
        if (cases[i].status >= 0)
            assert_int_equal(h.method, cases[i].known);
    }
}

struct sample {
    const char *what, *lines;
    int answer;
};

static void check(const struct sample *samples, size_t n, int (*read)(const char *lines))
{
    for (size_t i = 0; i < n; i++) {
        int answer = read(samples[i].lines);
        if (answer != samples[i].answer)
            fail_msg("%s: %d in place of %d", samples[i].what, answer, samples[i].answer);
    }
}

static const struct sample pseudo[] = {
    {"nothing", "", BAD},
    {"regular fields alone", "host|a\n", BAD},
    {"no method", ":scheme|http\n:path|/\n:authority|a\n", BAD},
    {"no scheme", ":method|GET\n:path|/\n:authority|a\n", BAD},
    {"no path", ":method|GET\n:scheme|http\n:authority|a\n", BAD},
    {"an empty path", ":method|GET\n:scheme|http\n:path|\n:authority|a\n", BAD},
    {"two methods", ":method|GET\n" TO_A, BAD},
    {"two schemes", ":scheme|https\n" TO_A, BAD},
    {"two paths", ":path|/\n" TO_A, BAD},
    {"two authorities", ":authority|a\n" TO_A, BAD},
    {"two empty paths", ":path|\n:path|\n", BAD},
    {"an unknown one", TO_A ":name|x\n", BAD},
    {"a response pseudo-header", TO_A ":status|200\n", BAD},
    {"no name at all", TO_A ":|x\n", BAD},
    {"in capitals", ":METHOD|GET\n:scheme|https\n:path|/\n:authority|a\n", BAD},
    {"after a regular field", GET "accept|*/*\n:authority|a\n", BAD},
    {"white space before a value", ":method|GET\n:scheme|https\n:path| /\n:authority|a\n", BAD},
    {"a control character", ":method|GET\n:scheme|https\n:path|/\x01\n:authority|a\n", BAD},
};

static void h2_head_pseudo_headers_are_validated(void **state)
{
    (void)state;
    check(pseudo, MK_LEN(pseudo), read_head);
}

static const struct sample targets[] = {
    {"a query", ":method|GET\n:scheme|http\n:path|/?\n:authority|a\n", 0},
    {"the server itself", ":method|OPTIONS\n:scheme|http\n:path|*\n:authority|a\n", 0},
    {"an asterisk with GET", ":method|GET\n:scheme|http\n:path|*\n:authority|a\n", 400},
    {"an absolute URL", ":method|GET\n:scheme|http\n:path|http://b/\n:authority|a\n", 400},
    {"no slash", ":method|GET\n:scheme|http\n:path|x\n:authority|a\n", 400},
    {"a blank", ":method|GET\n:scheme|http\n:path|/a b\n:authority|a\n", 400},
    {"a fragment", ":method|GET\n:scheme|http\n:path|/a#b\n:authority|a\n", 400},
    {"beyond ASCII", ":method|GET\n:scheme|http\n:path|/\xc3\xa9\n:authority|a\n", 400},
    {"a scheme in capitals", ":method|GET\n:scheme|HTTP\n:path|/\n:authority|a\n", 0},
    {"another scheme", ":method|GET\n:scheme|ftp\n:path|/\n:authority|a\n", 400},
    {"an empty scheme", ":method|GET\n:scheme|\n:path|/\n:authority|a\n", 400},
    {"the longest path",
     ":method|GET\n:scheme|http\n:path|/234567890123456789012345678901234567890123456789012345678901234\n"
     ":authority|a\n",
     0},
};

static void h2_head_targets_are_validated(void **state)
{
    (void)state;
    check(targets, MK_LEN(targets), read_head);
}

static const struct sample hosts[] = {
    {"neither", GET, 400},
    {"Host alone", GET "host|a\n", 0},
    {"both", TO_A "host|a\n", 0},
    {"both, in different letter case", TO_A "host|A\n", 0},
    {"both, Host with the default port", TO_A "host|a:443\n", 0},
    {"both, :authority with the default port",
     ":method|GET\n:scheme|http\n:path|/\n:authority|a:80\nhost|a\n", 0},
    {"both, Host with an empty port", TO_A "host|a:\n", 0},
    {"another host", TO_A "host|b\n", BAD},
    {"another port", TO_A "host|a:80\n", BAD},
    {"an invalid Host", TO_A "host|a b\n", 400},
    {"an empty Host", TO_A "host|\n", 400},
    {"two equal hosts", TO_A "host|a\nhost|a\n", 400},
    {"two hosts without authority", GET "host|a\nhost|a\n", 400},
    {"an empty authority", GET ":authority|\n", 400},
    {"an empty authority and a host", GET ":authority|\nhost|a\n", 400},
    {"user information", GET ":authority|me@a\n", 400},
    {"an address", GET ":authority|[::1]:80\n", 0},
    {"a port above 65535", GET ":authority|a:65536\n", 400},
    {"dots", GET ":authority|..\n", 400},
};

static void h2_head_hosts_are_validated(void **state)
{
    (void)state;
    check(hosts, MK_LEN(hosts), read_head);
}

static void h2_head_host_is_unique_and_first(void **state)
{
    (void)state;
    assert_int_equal(read_head(TO_A "accept|*/*\nhost|a:443\nte|trailers\n"), 0);
    expect_lines("host|a\naccept|*/*\nte|trailers\n");
    assert_int_equal(read_head(GET "accept|*/*\nhost|b:81\n"), 0);
    expect_lines("accept|*/*\nhost|b:81\n");
    assert_null(h.authority.p);
    assert_str(h.host, "b");
    assert_int_equal(h.port, 81);
}

static const struct sample connects[] = {
    {"a tunnel", ":method|CONNECT\n:authority|a:443\n", 0},
    {"without a port", ":method|CONNECT\n:authority|a\n", 400},
    {"without an authority", ":method|CONNECT\nhost|a:443\n", BAD},
    {"with a scheme", ":method|CONNECT\n:authority|a:443\n:scheme|https\n", BAD},
    {"with a path", ":method|CONNECT\n:authority|a:443\n:path|/\n", BAD},
    {"extended", ":method|CONNECT\n:protocol|websocket\n:scheme|https\n:path|/chat\n:authority|a\n", 0},
    {"extended, with Host", ":method|CONNECT\n:protocol|websocket\n:scheme|https\n:path|/chat\nhost|a\n", 0},
    {"extended, no scheme", ":method|CONNECT\n:protocol|websocket\n:path|/chat\n:authority|a\n", BAD},
    {"extended, no path", ":method|CONNECT\n:protocol|websocket\n:scheme|https\n:authority|a\n", BAD},
    {"extended, no host", ":method|CONNECT\n:protocol|websocket\n:scheme|https\n:path|/chat\n", 400},
    {"extended, path in authority form",
     ":method|CONNECT\n:protocol|x\n:scheme|https\n:path|b:1\n:authority|a\n", 400},
    {"a protocol without CONNECT", ":protocol|websocket\n" TO_A, BAD},
    {"an empty protocol", ":method|CONNECT\n:protocol|\n:scheme|https\n:path|/\n:authority|a\n", BAD},
    {"a list of protocols", ":method|CONNECT\n:protocol|a, b\n:scheme|https\n:path|/\n:authority|a\n", BAD},
    {"two protocols", ":method|CONNECT\n:protocol|x\n:protocol|x\n:scheme|https\n:path|/\n:authority|a\n",
     BAD},
};

static void h2_head_connect_is_validated(void **state)
{
    (void)state;
    check(connects, MK_LEN(connects), read_head);
    assert_int_equal(read_head(connects[0].lines), 0);
    assert_str(h.authority, "a:443");
    expect_lines("host|a:443\n");
    assert_int_equal(read_head(connects[5].lines), 0);
    assert_str(h.protocol, "websocket");
    assert_str(h.path, "/chat");
}

static const struct sample fields[] = {
    {"any characters of a token", TO_A "!#$%&'*+-.^_`~09az|x\n", 0},
    {"an empty value", TO_A "x|\n", 0},
    {"a value beyond ASCII", TO_A "x|\xc3\xa9\n", 0},
    {"blanks and tabs inside", TO_A "x|a \t b\n", 0},
    {"an empty name", TO_A "|x\n", BAD},
    {"capitals in a known name", TO_A "Accept|x\n", BAD},
    {"capitals at the end of a known name", TO_A "if-modified-sincE|x\n", BAD},
    {"capitals in another name", TO_A "x-Y|x\n", BAD},
    {"a blank in a name", TO_A "x y|x\n", BAD},
    {"a colon in a name", TO_A "x:|x\n", BAD},
    {"a name beyond ASCII", TO_A "x\xc3\xa9|x\n", BAD},
    {"a control character in a name", TO_A "x\x01|x\n", BAD},
    {"a carriage return in a value", TO_A "x|a\rb\n", BAD},
    {"a control character in a value", TO_A "x|a\x7f\n", BAD},
    {"a blank before a value", TO_A "x| a\n", BAD},
    {"a tab after a value", TO_A "x|a\t\n", BAD},
    {"a value of one blank", TO_A "x| \n", BAD},
    {"connection", TO_A "connection|close\n", BAD},
    {"keep-alive", TO_A "keep-alive|1\n", BAD},
    {"proxy-connection", TO_A "proxy-connection|x\n", BAD},
    {"transfer-encoding", TO_A "transfer-encoding|chunked\n", BAD},
    {"upgrade", TO_A "upgrade|websocket\n", BAD},
    {"te: trailers", TO_A "te|trailers\n", 0},
    {"te with more", TO_A "te|trailers, deflate\n", BAD},
    {"te, empty", TO_A "te|\n", BAD},
};

static void h2_head_fields_are_validated(void **state)
{
    (void)state;
    check(fields, MK_LEN(fields), read_head);
}

/* The line format of read_head() cannot express these values. */
static void h2_head_rejects_nul_and_line_breaks(void **state)
{
    (void)state;
    static const mk_str bad[] = {MK_STR_INIT("a\0b"), MK_STR_INIT("\n"), MK_STR_INIT("a\nb"),
                                 MK_STR_INIT("\0")};
    struct mk_header_field buffer[2];
    for (size_t i = 0; i < MK_LEN(bad); i++) {
        mk_h2_head_init(&h, &arena, buffer, &h2head_limits, false);
        assert_int_equal(mk_h2_head_on_header(&h, MK_STR("x"), bad[i]), BAD);
        mk_h2_head_init(&h, &arena, buffer, &h2head_limits, false);
        assert_int_equal(mk_h2_head_on_header(&h, bad[i], MK_STR("x")), BAD);
        mk_h2_head_init(&h, &arena, buffer, &h2head_limits, false);
        assert_int_equal(mk_h2_head_on_header(&h, MK_STR(":path"), bad[i]), BAD);
        assert_int_equal(mk_h2_head_finish(&h), BAD);
    }
}

static const struct sample lengths[] = {
    {"none", TO_A "content-length|0\n", 0},
    {"some", TO_A "content-length|18446744073709551615\n", 0},
    {"too much", TO_A "content-length|18446744073709551616\n", 400},
    {"empty", TO_A "content-length|\n", 400},
    {"signed", TO_A "content-length|+1\n", 400},
    {"a list", TO_A "content-length|1, 1\n", 400},
    {"twice the same", TO_A "content-length|1\ncontent-length|1\n", 400},
    {"twice", TO_A "content-length|1\ncontent-length|2\n", 400},
};

static void h2_head_content_length_and_expect_are_validated(void **state)
{
    (void)state;
    check(lengths, MK_LEN(lengths), read_head);
    assert_int_equal(read_head(TO_A "content-length|17\nexpect|100-Continue\n"), 0);
    assert_true(h.has_length);
    assert_int_equal(h.length, 17);
    assert_true(h.expects_continue);
    expect_lines("host|a\ncontent-length|17\nexpect|100-Continue\n");
    assert_int_equal(read_head(TO_A "expect|miracles\n"), 417);
}

static void h2_head_cookie_fields_are_joined(void **state)
{
    (void)state;
    assert_int_equal(read_head(TO_A "cookie|a=b\naccept|*/*\ncookie|c=d\ncookie|\ncookie|e=f; g=h\n"), 0);
    expect_lines("host|a\ncookie|a=b; c=d; ; e=f; g=h\naccept|*/*\n");
    assert_int_equal(read_head(TO_A "cookie|a=b\n"), 0);
    expect_lines("host|a\ncookie|a=b\n");
}

static void h2_head_many_cookie_fields_make_one_line(void **state)
{
    (void)state;
    assert_int_equal(read_head(TO_A "cookie|1\ncookie|2\ncookie|3\ncookie|4\ncookie|5\ncookie|6\ncookie|7\n"
                                    "cookie|8\ncookie|9\n"),
                     0);
    expect_lines("host|a\ncookie|1; 2; 3; 4; 5; 6; 7; 8; 9\n");
}

static void h2_head_long_target_gets_414(void **state)
{
    (void)state;
    assert_int_equal(
        read_head(":authority|a\n:method|HEAD\n:scheme|http\n"
                  ":path|/2345678901234567890123456789012345678901234567890123456789012345\nx|y\n"),
        414);
    assert_int_equal(h.method, MK_METHOD_HEAD);
    assert_str(h.host, "a");
    assert_int_equal(h.fields.n, 0);
}

static void h2_head_too_many_fields_get_431(void **state)
{
    (void)state;
    const char *seven = "a|1\na|2\na|3\na|4\na|5\na|6\na|7\n";
    char text[256];
    snprintf(text, sizeof text, TO_A "%s", seven); /* seven headers and Host: the limit */
    assert_int_equal(read_head(text), 0);
    assert_int_equal(h.fields.n, H2HEAD_FIELDS_MAX);
    snprintf(text, sizeof text, TO_A "%sa|8\n", seven);
    assert_int_equal(read_head(text), 431);
    assert_int_equal(h.method, MK_METHOD_GET);
    assert_str(h.host, "a");
    assert_int_equal(h.fields.n, H2HEAD_FIELDS_MAX);
    snprintf(text, sizeof text, TO_A "%shost|a\n", seven); /* Host repeats :authority and does not count */
    assert_int_equal(read_head(text), 0);
    snprintf(text, sizeof text, GET "%shost|a\n", seven);
    assert_int_equal(read_head(text), 0);
}

/* The limit on the list size (RFC 9113, section 6.5.2) is exact to the byte. */
static void h2_head_list_size_limit_is_exact(void **state)
{
    (void)state;
    size_t before = 4 * 32 + strlen(":methodGET:schemehttps:path/:authoritya");
    size_t left = h2head_limits.head_max - before - 32 - 1;
    char text[1024], value[600];
    for (size_t over = 0; over < 2; over++) {
        memset(value, 'v', sizeof value);
        value[left + over] = '\0';
        snprintf(text, sizeof text, TO_A "x|%s\n", value);
        assert_int_equal(read_head(text), over ? 431 : 0);
        assert_int_equal(h.size, h2head_limits.head_max + over);
    }
    value[left] = '\0';
    snprintf(text, sizeof text, TO_A "x|%s\nhost|a\n", value); /* Host counts although it is dropped */
    assert_int_equal(read_head(text), 431);
    assert_int_equal(read_head(TO_A "cookie|1\ncookie|1\ncookie|1\ncookie|1\ncookie|1\ncookie|1\ncookie|1\n"
                                    "cookie|1\ncookie|1\ncookie|1\ncookie|1\ncookie|1\ncookie|1\n"),
                     431);
}

static const struct sample trailers[] = {
    {"none", "", 0},
    {"some", "x-sum|1\nx-sum|2\n", 0},
    {"a pseudo field", "x|y\n:path|/\n", BAD},
    {"a pseudo field first", ":method|GET\n", BAD},
    {"capitals", "X|y\n", BAD},
    {"a bad value", "x|y\r\n", BAD},
    {"one of the connection", "transfer-encoding|chunked\n", BAD},
    {"too many", "a|1\na|2\na|3\na|4\na|5\na|6\na|7\na|8\na|9\n", 431},
};

static void h2_head_trailers_are_validated(void **state)
{
    (void)state;
    check(trailers, MK_LEN(trailers), read_trailers);
    assert_int_equal(read_trailers("x-sum|1\ncookie|a\ncookie|b\ncontent-length|x\nhost|..\n"), 0);
    expect_lines("x-sum|1\ncookie|a\ncookie|b\ncontent-length|x\nhost|..\n");
    assert_false(h.has_length);
}

static void h2_head_first_error_is_reported(void **state)
{
    (void)state;
    struct mk_header_field buffer[2];
    mk_h2_head_init(&h, &arena, buffer, &h2head_limits, false);
    assert_int_equal(mk_h2_head_on_header(&h, MK_STR("host"), MK_STR("a")), 0);
    assert_int_equal(mk_h2_head_on_header(&h, MK_STR("host"), MK_STR("a")), 400);
    assert_int_equal(mk_h2_head_on_header(&h, MK_STR("X"), MK_STR("a")), 400);
    assert_int_equal(mk_h2_head_finish(&h), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h2_head_request_is_parsed, setup),
        fixture_test(h2_head_pseudo_headers_may_have_any_order, setup),
        fixture_test(h2_head_methods_are_recognized, setup),
        fixture_test(h2_head_pseudo_headers_are_validated, setup),
        fixture_test(h2_head_targets_are_validated, setup),
        fixture_test(h2_head_hosts_are_validated, setup),
        fixture_test(h2_head_host_is_unique_and_first, setup),
        fixture_test(h2_head_connect_is_validated, setup),
        fixture_test(h2_head_fields_are_validated, setup),
        fixture_test(h2_head_rejects_nul_and_line_breaks, setup),
        fixture_test(h2_head_content_length_and_expect_are_validated, setup),
        fixture_test(h2_head_cookie_fields_are_joined, setup),
        fixture_test(h2_head_many_cookie_fields_make_one_line, setup),
        fixture_test(h2_head_long_target_gets_414, setup),
        fixture_test(h2_head_too_many_fields_get_431, setup),
        fixture_test(h2_head_list_size_limit_is_exact, setup),
        fixture_test(h2_head_trailers_are_validated, setup),
        fixture_test(h2_head_first_error_is_reported, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
