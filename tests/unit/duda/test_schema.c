/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of schemas: limits, formats, patterns, unique lists, maps, custom checks, codes and messages. */
#include <duda/form.h>
#include <duda/json.h>
#include <errno.h>

#include "text/schema_check.h"
#include "text/schema_field.h"
#include "unit/readers/test_allocator.h"
#include "unit/test.h"

struct stock {
    mk_str color;
    int n;
};

static const char *check_stock(const void *object)
{
    const struct stock *s = object;
    return s->n == 13 ? "13 is unlucky" : NULL;
}

static const struct duda_schema_field stock_members[] = {
    DUDA_STRING(struct stock, color, .max_length = 5, .pattern = "^[a-z]+$"),
    DUDA_INTEGER(struct stock, n, DUDA_MINIMUM(0)),
};
static const struct duda_schema stock_schema =
    DUDA_SCHEMA(struct stock, stock_members, .validate = check_stock);

struct product {
    int warm, cold, exact;
    double share;
    mk_str sku, mail, id, day, link, price, photo;
    int64_t made;
    bool has_made;
    mk_str *tags;
    size_t n_tags;
    int16_t *sizes;
    size_t n_sizes;
    double *weights;
    size_t n_weights;
    struct stock *stock;
    size_t n_stock;
};

static const char *check_share(const void *value)
{
    double share;
    memcpy(&share, value, sizeof share);
    return share == 0.5 ? "a half is not possible" : NULL;
}

static const struct duda_schema_field product_members[] = {
    DUDA_INTEGER(struct product, warm, .optional = true, DUDA_MINIMUM(-40)),
    DUDA_INTEGER(struct product, cold, .optional = true, DUDA_MAXIMUM(0)),
    DUDA_INTEGER(struct product, exact, .optional = true, DUDA_MINIMUM(7), DUDA_MAXIMUM(7)),
    DUDA_DOUBLE(struct product, share, .optional = true, DUDA_MINIMUM(0), .check = check_share),
    DUDA_STRING(struct product, sku, .optional = true, .max_length = 6, .pattern = "^[A-Z]{3}"),
    DUDA_STRING(struct product, mail, .optional = true, .format = DUDA_FORMAT_EMAIL,
                .message = "Enter your email address", .code = "bad_mail"),
    DUDA_STRING(struct product, id, .optional = true, .format = DUDA_FORMAT_UUID),
    DUDA_STRING(struct product, day, .optional = true, .format = DUDA_FORMAT_DATE),
    DUDA_STRING(struct product, link, .optional = true, .format = DUDA_FORMAT_URL),
    DUDA_STRING(struct product, price, .optional = true, .format = DUDA_FORMAT_DECIMAL),
    DUDA_BYTES(struct product, photo, .optional = true, .max_length = 4),
    DUDA_TIMESTAMP(struct product, made, DUDA_OPTIONAL(struct product, has_made)),
    DUDA_LIST(struct product, tags, n_tags, DUDA_KIND_STRING, .optional = true, .is_unique = true),
    DUDA_INTEGERS(struct product, sizes, n_sizes, .optional = true, .is_unique = true, .min_length = 2),
    DUDA_LIST(struct product, weights, n_weights, DUDA_KIND_DOUBLE, .optional = true, .is_unique = true),
    DUDA_MAP(struct product, stock, n_stock, &stock_schema, .optional = true, .max_length = 3),
};
static const struct duda_schema product_schema = DUDA_SCHEMA(struct product, product_members);

static struct duda_validation_errors errors;
static char buffer[4096];

static int read_product(const char *text, struct product *out)
{
    memset(out, 0, sizeof *out);
    return duda_json_read(mk_str_from_c(text), &product_schema, &pool, NULL, out, &errors);
}

/* Reads the product, and expects one error with this code, pointer and message. */
static void expect_error(const char *text, const char *code, const char *pointer, const char *message)
{
    struct product p;
    assert_int_equal(read_product(text, &p), -EINVAL);
    assert_int_equal(errors.n, 1);
    assert_string_equal(errors.items[0].code, code);
    assert_str(errors.items[0].pointer, pointer);
    assert_str(errors.items[0].message, message);
}

static void expect_valid(const char *text)
{
    struct product p;
    assert_int_equal(read_product(text, &p), 0);
    assert_int_equal(errors.n, 0);
}

static void schema_single_bound_leaves_the_other_end_open(void **state)
{
    (void)state;
    expect_valid("{\"warm\": 2147483647}");
    expect_valid("{\"warm\": -40, \"cold\": -2147483648}");
    expect_error("{\"warm\": -41}", "minimum", "/warm", "`warm` must be an integer from -40 to 2147483647");
    assert_true(errors.items[0].at_least.is_set && errors.items[0].at_least.value == -40);
    assert_false(errors.items[0].at_most.is_set);
    expect_error("{\"cold\": 1}", "maximum", "/cold", "`cold` must be an integer from -2147483648 to 0");
    expect_valid("{\"exact\": 7}");
    expect_error("{\"exact\": 8}", "maximum", "/exact", "`exact` must be an integer from 7 to 7");
    expect_error("{\"exact\": 99999999999}", "maximum", "/exact", "`exact` must be an integer from 7 to 7");
    expect_error("{\"share\": -0.1}", "minimum", "/share", "`share` must be a number of at least 0");
    expect_valid("{\"share\": 1e300}");
    expect_error("{\"exact\": 7.5}", "type", "/exact", "`exact` must be an integer from 7 to 7");
}

/* Stores the integer, and reads the member back. Returns false if it does not fit; the member is then
 * unchanged. */
static bool can_hold(size_t size, bool is_signed, bool is_negative, uint64_t amount)
{
    const struct duda_schema_field field = {.kind = DUDA_KIND_INTEGER, .size = size, .is_signed = is_signed};
    unsigned char at[10];
    memset(at, 0x5a, sizeof at);
    bool ok = duda_schema_field_set_integer(&field, at + 1, is_negative, amount);
    for (size_t i = 0; i < sizeof at; i++)
        assert_true((ok && i > 0 && i <= size) || at[i] == 0x5a);
    struct duda_value v = duda_schema_field_value_at(&field, at + 1);
    if (ok && is_signed)
        assert_true((uint64_t)v.of.integer == (is_negative ? 0 - amount : amount));
    else if (ok)
        assert_true(v.of.uinteger == amount);
    return ok;
}

static void schema_integers_fit_into_their_members(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 8; size *= 2) {
        uint64_t all = UINT64_MAX >> (64 - 8 * size), half = all >> 1;
        assert_true(can_hold(size, true, false, half) && can_hold(size, true, true, half + 1));
        assert_false(can_hold(size, true, false, half + 1) || can_hold(size, true, true, half + 2));
        assert_true(can_hold(size, false, false, all) && can_hold(size, false, true, 0));
        assert_false(can_hold(size, false, true, 1) || can_hold(size, true, true, UINT64_MAX));
        assert_true(size == 8 || !can_hold(size, false, false, all + 1));
        assert_true(can_hold(size, true, true, 1) && can_hold(size, true, false, 0));
    }
}

static void schema_pattern_is_matched_after_the_length(void **state)
{
    (void)state;
    expect_valid("{\"sku\": \"ABCd\"}");
    expect_error("{\"sku\": \"abc\"}", "pattern", "/sku",
                 "`sku` must be a string of at most 6 characters that matches ^[A-Z]{3}");
    assert_string_equal(errors.items[0].expected, "^[A-Z]{3}");
    expect_error("{\"sku\": \"abcdefg\"}", "maxLength", "/sku",
                 "`sku` must be a string of at most 6 characters that matches ^[A-Z]{3}");
    assert_true(errors.items[0].at_most.value == 6);
}

static void schema_formats_have_codes_and_messages(void **state)
{
    (void)state;
    expect_valid("{\"mail\": \"ana@example.org\", \"id\": \"0190a6c1-7a1b-7000-8000-0123456789aB\"}");
    expect_valid("{\"day\": \"2024-02-29\", \"link\": \"https://a.b/c?d#e\", \"price\": \"-0.50\"}");
    expect_error("{\"mail\": \"ana\"}", "bad_mail", "/mail", "Enter your email address");
    expect_error("{\"mail\": 1}", "bad_mail", "/mail", "Enter your email address");
    assert_int_equal(errors.items[0].line, 0); /* users see the message */
    expect_error("{\"id\": \"x\"}", "format", "/id", "`id` must be a UUID");
    assert_string_equal(errors.items[0].expected, "uuid");
    assert_int_equal(errors.items[0].line, 1);
    expect_error("{\"day\": \"2023-02-29\"}", "format", "/day", "`day` must be a date such as 2026-03-01");
    expect_error("{\"link\": \"ftp://a\"}", "format", "/link",
                 "`link` must be a URL that begins with http:// or https://");
    expect_error("{\"price\": \"1e3\"}", "format", "/price",
                 "`price` must be a decimal number such as 12.50");
}

static void schema_custom_check_runs_after_the_rules(void **state)
{
    (void)state;
    expect_error("{\"share\": 0.5}", "check", "/share", "a half is not possible");
    expect_error("{\"stock\": {\"red\": 13}}", "check", "/stock/red", "13 is unlucky");
}

static void schema_unique_lists_have_no_equal_elements(void **state)
{
    (void)state;
    expect_valid("{\"tags\": [\"a\", \"b\", \"ab\", \"\"], \"sizes\": [1, -1, 3], \"weights\": [0.1, 0.2]}");
    expect_error("{\"tags\": [\"b\", \"a\", \"b\"]}", "uniqueItems", "/tags",
                 "`tags` must be a list without duplicates");
    expect_error("{\"sizes\": [-5, 4, -5]}", "uniqueItems", "/sizes",
                 "`sizes` must be a list of at least 2 elements without duplicates");
    expect_error("{\"sizes\": [1]}", "minItems", "/sizes",
                 "`sizes` must be a list of at least 2 elements without duplicates");
    expect_error("{\"weights\": [0, 1, -0.0]}", "uniqueItems", "/weights",
                 "`weights` must be a list without duplicates");
}

static void schema_bytes_and_timestamps_round_trip(void **state)
{
    struct product p;
    (void)state;
    assert_int_equal(
        read_product("{\"photo\": \"AP8=\", \"made\": \"2026-03-01T12:30:00.25+01:00\", \"tags\": []}", &p),
        0);
    assert_int_equal(p.photo.len, 2);
    assert_memory_equal(p.photo.p, "\0\xff", 2);
    assert_true(p.has_made && p.made == INT64_C(1772364600250000));
    const struct duda_value v = duda_value_struct(&product_schema, &p);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_json_write(&out, &v);
    assert_non_null(strstr(buffer, "\"photo\":\"AP8=\",\"made\":\"2026-03-01T11:30:00.25Z\""));
    expect_error("{\"photo\": \"A\"}", "format", "/photo",
                 "`photo` must be bytes as base64 of at most 4 bytes");
    expect_error("{\"photo\": \"AAAAAAA=\"}", "maxLength", "/photo",
                 "`photo` must be bytes as base64 of at most 4 bytes");
    expect_error("{\"made\": \"2026-03-01\"}", "format", "/made",
                 "`made` must be a date and time such as 2026-03-01T12:30:00Z");
}

static void schema_map_holds_the_members_of_an_object(void **state)
{
    struct product p;
    (void)state;
    assert_int_equal(read_product("{\"stock\": {\"red\": 3, \"blue\": 0}}", &p), 0);
    assert_int_equal(p.n_stock, 2);
    assert_str(p.stock[1].color, "blue");
    assert_int_equal(p.stock[0].n, 3);
    const struct duda_value v = duda_value_struct(&product_schema, &p);
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_json_write(&out, &v);
    mk_buf_add_char(&out, '\0');
    assert_non_null(strstr(buffer, "\"stock\":{\"red\":3,\"blue\":0}"));
    expect_valid("{\"stock\": {}}");
    expect_error("{\"stock\": {\"red\": -1}}", "minimum", "/stock/red",
                 "`stock.red` must be an integer from 0 to 2147483647");
    expect_error("{\"stock\": {\"Red\": 1}}", "pattern", "/stock/Red",
                 "`stock.Red` must be a string of at most 5 characters that matches ^[a-z]+$");
    expect_error("{\"stock\": {\"a\": 1, \"b\": 1, \"a\": 2}}", "duplicate", "/stock",
                 "`stock` contains a name more than once");
    expect_error("{\"stock\": {\"a\": 1, \"b\": 1, \"c\": 2, \"d\": 4}}", "maxItems", "/stock",
                 "`stock` must be an object of at most 3 members");
    expect_error("{\"stock\": []}", "type", "/stock", "`stock` must be an object of at most 3 members");
    assert_int_equal(read_product("{\"stock\": {\"red\"", &p), -EBADMSG);
}

static void schema_rules_hold_for_forms(void **state)
{
    struct product p = {0};
    struct mk_form form;
    (void)state;
    assert_int_equal(
        mk_form_parse(MK_STR("warm=5&made=2026-03-01T12:30:00Z&photo=AP8%3D&stock.red=3&stock.blue=4"
                             "&stockings.x=1&tags=a&tags=b"),
                      &pool, NULL, &form),
        0);
    assert_int_equal(duda_form_data_bind(&form, &product_schema, &pool, &p, &errors), -EINVAL);
    assert_int_equal(errors.n, 1); /* an absent list is empty */
    assert_str(errors.items[0].pointer, "/sizes");
    assert_string_equal(errors.items[0].code, "minItems");
    assert_true(p.n_stock == 2 && p.stock[1].n == 4 && p.warm == 5 && p.photo.len == 2);
    assert_int_equal(
        mk_form_parse(MK_STR("sizes=1&sizes=1&mail=x&stock.red=-1&stock.red=2&share=.5&share=0.5"), &pool,
                      NULL, &form),
        0);
    assert_int_equal(duda_form_data_bind(&form, &product_schema, &pool, &p, &errors), -EINVAL);
    static const char *const expected[][2] = {{"/share", "type"},
                                              {"/mail", "bad_mail"},
                                              {"/sizes", "uniqueItems"},
                                              {"/stock/red", "minimum"},
                                              {"/stock", "duplicate"}};
    assert_int_equal(errors.n, MK_LEN(expected));
    for (size_t i = 0; i < MK_LEN(expected); i++) {
        assert_str(errors.items[i].pointer, expected[i][0]);
        assert_string_equal(errors.items[i].code, expected[i][1]);
    }
}

static void schema_formats_accept_and_reject(void **state)
{
    static const struct {
        enum duda_schema_format format;
        const char *good[12], *bad[24];
    } cases[] = {
        {DUDA_FORMAT_EMAIL,
         {"a@b", "a.b+c@example.org", "o'hara@x-y.example", "!#$%@a.b"},
         {"", "@", "a@", "@a", "a@b@c", ".a@b", "a.@b", "a..b@c", "a b@c", "a@-b", "a@b-", "a@b..c", "a@b.",
          "<a@b>", "\"a\"@b", "a@[1.2.3.4]", "\xc3\xa4@b", "a@b\n"}},
        {DUDA_FORMAT_UUID,
         {"0190a6c1-7a1b-7000-8000-0123456789ab"},
         {"", "0190a6c1-7a1b-7000-8000-0123456789a", "0190a6c1-7a1b-7000-8000-0123456789abc",
          "0190a6c17-a1b-7000-8000-0123456789ab", "{190a6c1-7a1b-7000-8000-0123456789a}",
          "0190a6c1-7a1b-7000-8000-0123456789ag"}},
        {DUDA_FORMAT_DATE_TIME,
         {"2026-03-01T12:30:00Z", "2026-03-01t12:30:00z", "2026-03-01T12:30:00.123456789+14:00",
          "1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00", "0001-01-01T00:00:00Z",
          "9999-12-31T23:59:59Z"},
         {"", "2026-03-01", "2026-03-01 12:30:00Z", "2026-03-01T12:30:00", "2026-03-01T12:30Z",
          "2026-03-01T24:00:00Z", "2026-03-01T12:60:00Z", "2026-03-01T12:30:61Z", "2026-03-01T12:30:60Z",
          "2026-03-01T12:30:00.Z", "2026-03-01T12:30:00+1:00", "2026-03-01T12:30:00+24:00",
          "2026-03-01T12:30:00Zx", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01",
          "9999-12-31T23:59:59-00:01", "2026-13-01T12:30:00Z", "2026-02-30T12:30:00Z",
          "-2026-02-03T12:30:00Z"}},
        {DUDA_FORMAT_DATE,
         {"2000-02-29", "2026-12-31"},
         {"", "1900-02-29", "2026-00-01", "2026-01-00", "2026-04-31", "26-04-01", "2026-4-1", "2026-04-01T",
          "2026/04/01"}},
        {DUDA_FORMAT_URL,
         {"http://a", "HTTPS://example.org:8443/a%20b?c=d#e", "http://[::1]:80/", "http://1.2.3.4",
          "https://a?x"},
         {"",
          "http://",
          "http:///a",
          "//a",
          "a.b",
          "ftp://a",
          "http://a b",
          "http://a/%2",
          "http://a/%zz",
          "http://a:0",
          "http://a:65536",
          "http://a:",
          "http://u:p@a",
          "http://[::1",
          "http://[x]",
          "http://[1]",
          "http://a/\"",
          "http://a#b#c",
          "http://a/\xc3\xa4",
          "javascript:alert(1)",
          "http://-a"}},
        {DUDA_FORMAT_DECIMAL,
         {"0", "-1", "12.50", "0.001", "-0.0", "123456789012345678901234567890"},
         {"", "-", "+1", ".5", "1.", "01", "1e5", "1,5", " 1", "1 ", "--1", "1.2.3", "NaN"}},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        for (size_t j = 0; cases[i].good[j]; j++)
            if (!duda_format_matches(cases[i].format, mk_str_from_c(cases[i].good[j])))
                fail_msg("%s is not accepted", cases[i].good[j]);
        for (size_t j = 0; cases[i].bad[j]; j++)
            if (duda_format_matches(cases[i].format, mk_str_from_c(cases[i].bad[j])))
                fail_msg("`%s` is accepted", cases[i].bad[j]);
    }
    assert_true(duda_format_matches(DUDA_FORMAT_NONE, MK_STR("x")));
    assert_false(duda_format_matches((enum duda_schema_format)99, MK_STR("x")));
    assert_null(duda_format_name((enum duda_schema_format)99));
}

/* Every day of 800 years, and the ends of the range. */
static void schema_timestamps_are_parsed_and_written(void **state)
{
    static const int64_t day = INT64_C(86400000000);
    static const struct {
        int64_t time;
        const char *text;
    } cases[] = {{0, "1970-01-01T00:00:00Z"},
                 {-1, "1969-12-31T23:59:59.999999Z"},
                 {INT64_C(951782400000000), "2000-02-29T00:00:00Z"},
                 {INT64_C(-62135596800000000), "0001-01-01T00:00:00Z"},
                 {INT64_C(253402300799999990), "9999-12-31T23:59:59.99999Z"}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        int64_t time;
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        duda_timestamp_write(&out, cases[i].time);
        assert_str(mk_buf_str(&out), cases[i].text);
        assert_true(duda_timestamp_parse(mk_str_from_c(cases[i].text), &time) && time == cases[i].time);
    }
    for (int64_t i = -146097; i < 146097; i++) {
        int64_t time;
        struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
        duda_timestamp_write(&out, i * day + 1);
        assert_true(duda_timestamp_parse(mk_buf_str(&out), &time) && time == i * day + 1);
    }
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_timestamp_write(&out, INT64_MAX);
    duda_timestamp_write(&out, INT64_MIN);
    assert_int_equal(out.len, 0);
}

/* ---- Mistakes in schemas ---- */

static void expect_wrong_schema(const struct duda_schema_field *field, const char *message)
{
    const struct duda_schema schema = {
        .name = "x", .size = 8, .fields = field, .n = 1, .field_size = sizeof *field};
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer - 1);
    assert_false(duda_schema_check(&schema, &out));
    buffer[out.len] = '\0';
    if (!strstr(buffer, message))
        fail_msg("%s", buffer);
}

static void schema_with_useless_rules_is_rejected(void **state)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    static const struct duda_schema_field wrong[] = {
        DUDA_STRING(struct product, sku, DUDA_MINIMUM(1)),
        DUDA_INTEGER(struct product, warm, .max_length = 3),
        DUDA_INTEGER(struct product, warm, .pattern = "a"),
        DUDA_INTEGER(struct product, warm, .format = DUDA_FORMAT_UUID),
        DUDA_INTEGER(struct product, warm, DUDA_MINIMUM(2), DUDA_MAXIMUM(1)),
        DUDA_STRING(struct product, sku, .min_length = 2, .max_length = 1),
        DUDA_STRING(struct product, sku, .is_unique = true),
        DUDA_STRING(struct product, sku, .pattern = "a("),
        DUDA_STRING(struct product, sku, .format = (enum duda_schema_format)99),
        DUDA_TIMESTAMP(struct product, warm),
        DUDA_MAP(struct product, stock, n_stock, &product_schema),
        DUDA_LIST(struct product, stock, n_stock, DUDA_KIND_OBJECT, .schema = &stock_schema,
                  .is_unique = true),
        DUDA_ENUM(struct product, warm, NULL),
    };
    static const char *const messages[] = {"DUDA_MINIMUM() and DUDA_MAXIMUM() are for integers and doubles",
                                           "`.min_length` and `.max_length` are for strings, bytes and lists",
                                           "`.pattern` and `.format` are for strings",
                                           "`.pattern` and `.format` are for strings",
                                           "its minimum is larger than its maximum",
                                           "its `.min_length` is larger than its `.max_length`",
                                           "`.is_unique` is for lists",
                                           "`.pattern`, offset 2: ",
                                           "its `.format` is unknown",
                                           "a timestamp is an int64_t",
                                           "the schema of a map has two members",
                                           "`.is_unique` is for lists",
                                           "an enum needs `.values`"};
    (void)state;
    assert_true(duda_schema_check(&product_schema, &out));
    assert_true(duda_schema_check(NULL, &out));
    for (size_t i = 0; i < MK_LEN(wrong); i++)
        expect_wrong_schema(&wrong[i], messages[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(schema_single_bound_leaves_the_other_end_open, NULL, pool_free),
        cmocka_unit_test(schema_integers_fit_into_their_members),
        fixture_test(schema_pattern_is_matched_after_the_length, NULL, pool_free),
        fixture_test(schema_formats_have_codes_and_messages, NULL, pool_free),
        fixture_test(schema_custom_check_runs_after_the_rules, NULL, pool_free),
        fixture_test(schema_unique_lists_have_no_equal_elements, NULL, pool_free),
        fixture_test(schema_bytes_and_timestamps_round_trip, NULL, pool_free),
        fixture_test(schema_map_holds_the_members_of_an_object, NULL, pool_free),
        fixture_test(schema_rules_hold_for_forms, NULL, pool_free),
        cmocka_unit_test(schema_formats_accept_and_reject),
        cmocka_unit_test(schema_timestamps_are_parsed_and_written),
        cmocka_unit_test(schema_with_useless_rules_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
