/* SPDX-License-Identifier: Apache-2.0 */
#include "http/precondition.h"

#include "unit/headers.h"
#include "unit/test.h"

#define AT     "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER  "Sun, 06 Nov 1994 08:49:38 GMT"

enum { MODIFIED = 784111777, NOW = MODIFIED + 1000 };

static struct mk_header_field buffer[8];
static const struct mk_validators ours = {.etag = MK_STR_INIT("\"x\""), .modified = MODIFIED};

/* Parses header fields from "Name: value" lines. */
static struct mk_headers fields_of(const char *lines)
{
    struct mk_headers fields;
    mk_headers_init(&fields, buffer);
    mk_str rest = mk_str_from_c(lines);
    while (rest.len) {
        mk_str value = mk_str_cut(&rest, '\n');
        mk_str name = mk_str_cut(&value, ':');
        assert_true(headers_add(&fields, MK_LEN(buffer), name, mk_str_trim(value)));
    }
    return fields;
}

static enum mk_precondition check(const char *lines, enum mk_method method, const struct mk_validators *v)
{
    struct mk_headers fields = fields_of(lines);
    return mk_precondition_check(&fields, method, v, NOW);
}

enum { PASS = MK_PRECONDITION_PASS, KNOWN = MK_PRECONDITION_NOT_MODIFIED, FAILED = MK_PRECONDITION_FAILED };

struct table {
    const char *lines;
    int get, put;
};

static void check_table(const struct table *cases, size_t n, const struct mk_validators *v)
{
    for (size_t i = 0; i < n; i++) {
        if ((int)check(cases[i].lines, MK_METHOD_GET, v) != cases[i].get)
            fail_msg("GET: %s", cases[i].lines);
        if ((int)check(cases[i].lines, MK_METHOD_HEAD, v) != cases[i].get)
            fail_msg("HEAD: %s", cases[i].lines);
        if ((int)check(cases[i].lines, MK_METHOD_PUT, v) != cases[i].put)
            fail_msg("PUT: %s", cases[i].lines);
    }
}

static void precondition_single_headers(void **state)
{
    (void)state;
    static const struct table cases[] = {
        {"", PASS, PASS},
        {"Host: a", PASS, PASS},
        {"If-Match: \"x\"", PASS, PASS},
        {"If-Match: \"y\"", FAILED, FAILED},
        {"If-Match: W/\"x\"", FAILED, FAILED},
        {"If-Match: *", PASS, PASS},
        {"If-Match: \"y\"\nIf-Match: \"x\"", PASS, PASS},
        {"If-Match:", FAILED, FAILED},
        {"If-None-Match: \"x\"", KNOWN, FAILED},
        {"If-None-Match: \"y\", W/\"x\"", KNOWN, FAILED},
        {"If-None-Match: \"y\"\nIf-None-Match: \"x\"", KNOWN, FAILED},
        {"If-None-Match: \"y\"", PASS, PASS},
        {"If-None-Match: *", KNOWN, FAILED},
        {"If-Modified-Since: " AT, KNOWN, PASS},
        {"If-Modified-Since: " AFTER, KNOWN, PASS},
        {"If-Modified-Since: " BEFORE, PASS, PASS},
        {"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT", KNOWN, PASS},
        {"If-Modified-Since: yesterday", PASS, PASS},
        {"If-Modified-Since: " AT "\nIf-Modified-Since: " AT, PASS, PASS},
        {"If-Unmodified-Since: " AT, PASS, PASS},
        {"If-Unmodified-Since: " AFTER, PASS, PASS},
        {"If-Unmodified-Since: " BEFORE, FAILED, FAILED},
        {"If-Unmodified-Since: never", PASS, PASS},
    };
    check_table(cases, MK_LEN(cases), &ours);
}

static void precondition_precedence_of_headers(void **state)
{
    (void)state;
    static const struct table cases[] = {
        {"If-None-Match: \"y\"\nIf-Modified-Since: " AT, PASS, PASS},
        {"If-None-Match: \"x\"\nIf-Modified-Since: " BEFORE, KNOWN, FAILED},
        {"If-Match: \"x\"\nIf-Unmodified-Since: " BEFORE, PASS, PASS},
        {"If-Match: \"y\"\nIf-Unmodified-Since: " AT, FAILED, FAILED},
        {"If-Match: \"x\"\nIf-None-Match: \"x\"", KNOWN, FAILED},
        {"If-Match: \"y\"\nIf-None-Match: \"x\"", FAILED, FAILED},
        {"If-Unmodified-Since: " BEFORE "\nIf-None-Match: \"x\"", FAILED, FAILED},
        {"If-Unmodified-Since: " AT "\nIf-Modified-Since: " AT, KNOWN, PASS},
    };
    check_table(cases, MK_LEN(cases), &ours);
}

static void precondition_missing_resource(void **state)
{
    (void)state;
    static const struct table cases[] = {
        {"If-Match: *", FAILED, FAILED},          {"If-Match: \"x\"", FAILED, FAILED},
        {"If-None-Match: *", PASS, PASS},         {"If-None-Match: \"x\"", PASS, PASS},
        {"If-Unmodified-Since: " AT, PASS, PASS}, {"If-Modified-Since: " AT, PASS, PASS},
    };
    check_table(cases, MK_LEN(cases), NULL);
}

static void precondition_resource_without_validators(void **state)
{
    (void)state;
    static const struct mk_validators bare = {.etag = {NULL, 0}, .modified = MK_MODIFIED_NONE};
    static const struct table cases[] = {
        {"If-Match: *", PASS, PASS},
        {"If-Match: \"\"", FAILED, FAILED},
        {"If-None-Match: *", KNOWN, FAILED},
        {"If-Unmodified-Since: " BEFORE, PASS, PASS},
        {"If-Modified-Since: " AT, PASS, PASS},
    };
    check_table(cases, MK_LEN(cases), &bare);
}

static bool holds(const char *lines, const struct mk_validators *v, int64_t now)
{
    struct mk_headers fields = fields_of(lines);
    return mk_precondition_if_range_holds(&fields, v, now);
}

static void precondition_if_range_needs_strong_match(void **state)
{
    (void)state;
    static const struct mk_validators weak = {.etag = MK_STR_INIT("W/\"x\""), .modified = MODIFIED};
    assert_true(holds("Range: bytes=0-", &ours, NOW));
    assert_true(holds("If-Range: \"x\"", &ours, NOW));
    assert_false(holds("If-Range: \"y\"", &ours, NOW));
    assert_false(holds("If-Range: W/\"x\"", &ours, NOW));
    assert_false(holds("If-Range: W/\"x\"", &weak, NOW));
    assert_false(holds("If-Range: \"x\"", &weak, NOW));
    assert_false(holds("If-Range: \"x\", \"y\"", &ours, NOW));
    assert_false(holds("If-Range: *", &ours, NOW));
    /* the client must use the entity tag, because there is one */
    assert_false(holds("If-Range: " AT, &ours, NOW));
    assert_false(holds("If-Range: " AFTER, &ours, NOW));
    assert_false(holds("If-Range: " BEFORE, &ours, NOW));
    assert_false(holds("If-Range: x", &ours, NOW));
    assert_false(holds("If-Range:", &ours, NOW));
}

static void precondition_if_range_date_of_current_second_is_weak(void **state)
{
    (void)state;
    static const struct mk_validators dated = {.etag = {NULL, 0}, .modified = MODIFIED};
    assert_false(holds("If-Range: " AT, &dated, MODIFIED));
    assert_true(holds("If-Range: " AT, &dated, MODIFIED + 1));
    assert_false(holds("If-Range: " BEFORE, &dated, NOW));
    static const struct mk_validators bare = {.etag = {NULL, 0}, .modified = MK_MODIFIED_NONE};
    assert_false(holds("If-Range: " AT, &bare, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precondition_single_headers),
        cmocka_unit_test(precondition_precedence_of_headers),
        cmocka_unit_test(precondition_missing_resource),
        cmocka_unit_test(precondition_resource_without_validators),
        cmocka_unit_test(precondition_if_range_needs_strong_match),
        cmocka_unit_test(precondition_if_range_date_of_current_second_is_weak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
