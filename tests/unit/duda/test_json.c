/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON into structs and values, and writes JSON from them. */
#include <duda/json.h>
#include <errno.h>
#include <float.h>
#include <math.h>

#include "unit/duda/person.h"
#include "unit/readers/test_allocator.h"
#include "unit/test.h"

static struct duda_validation_errors errors;
static char buffer[8192];

static int read_person(const char *text, struct person *out)
{
    memset(out, 0, sizeof *out);
    return duda_json_read(mk_str_from_c(text), &person_shape, &pool, NULL, out, &errors);
}

static mk_str written(const struct duda_value *v)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_json_write(&out, v);
    assert_false(out.failed);
    return mk_buf_str(&out);
}

/* Returns all errors, one per line. */
static mk_str complaints(void)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    for (size_t i = 0; i < errors.n; i++) {
        duda_validation_error_write(&out, &errors.items[i]);
        mk_buf_add_char(&out, '\n');
    }
    return mk_buf_str(&out);
}

static void json_struct_round_trips(void **state)
{
    (void)state;
    static const char text[] =
        "{\"name\":\"Ana\",\"age\":30,\"admin\":true,\"mood\":-128,\"color\":\"green\",\"place\":{"
        "\"street\":\"M\xc3\xb6hre\",\"rent\":1.5},\"tags\":[\"a\",\"b\\\"\"],\"places\":[{\"street\":\"x\","
        "\"rent\":7}],\"numbers\":[1,-2],\"raw\":{\"a\":[1,{}]},\"big-one\":18446744073709551615}";
    struct person p;
    assert_int_equal(read_person(text, &p), 0);
    assert_int_equal(p.age, 30);
    assert_true(p.has_place);
    assert_int_equal(p.n_tags, 2);
    assert_str(p.tags[1], "b\"");
    struct duda_value v = duda_value_struct(&person_shape, &p);
    assert_str(written(&v), text);
}

static void json_absent_member_keeps_value_and_flag(void **state)
{
    (void)state;
    struct person p = {.mood = 3, .has_place = true, .place = {.street = MK_STR("x"), .rent = 2}};
    int e = duda_json_read(MK_STR("{\"name\":\"A\",\"age\":1,\"mood\":null,\"tags\":[]}"), &person_shape,
                           &pool, NULL, &p, &errors);
    assert_int_equal(e, 0);
    assert_int_equal(p.mood, 3); /* a number without a flag cannot be empty */
    struct duda_value v = duda_value_struct(&person_shape, &p);
    assert_str(written(&v), "{\"name\":\"A\",\"age\":1,\"admin\":false,\"mood\":3,\"color\":\"red\","
                            "\"place\":{\"street\":\"x\",\"rent\":2},\"tags\":[],"
                            "\"places\":[],\"numbers\":[],\"big-one\":0}");
}

static void json_null_clears_members_that_can_be_empty(void **state)
{
    (void)state;
    mk_str tag = MK_STR("a");
    struct person p = {.has_place = true,
                       .place = {.street = MK_STR("x"), .rent = 2},
                       .tags = &tag,
                       .n_tags = 1,
                       .raw = MK_STR("[1]")};
    int e = duda_json_read(MK_STR("{\"name\":\"A\",\"age\":1,\"place\":null,\"tags\":null,\"raw\":null}"),
                           &person_shape, &pool, NULL, &p, &errors);
    assert_int_equal(e, 0);
    assert_false(p.has_place);
    assert_true(p.place.street.p == NULL && p.place.rent == 0);
    assert_true(p.tags == NULL && p.n_tags == 0 && p.raw.p == NULL);
}

static int merge_person(const char *text, struct person *p)
{
    return duda_json_merge(mk_str_from_c(text), &person_shape, &pool, NULL, p, &errors);
}

static void json_merge_changes_only_sent_members(void **state)
{
    (void)state;
    struct person p = {
        .name = MK_STR("Ana"), .age = 30, .has_place = true, .place = {.street = MK_STR("x"), .rent = 2}};
    assert_int_equal(merge_person("{}", &p), 0);
    assert_int_equal(merge_person("{\"age\":31,\"place\":{\"rent\":3}}", &p), 0);
    assert_str(p.name, "Ana");
    assert_str(p.place.street, "x");
    assert_true(p.age == 31 && p.has_place && p.place.rent == 3);
    assert_int_equal(merge_person("{\"place\":null}", &p), 0);
    assert_false(p.has_place);
}

static void json_merge_checks_what_it_stores(void **state)
{
    (void)state;
    struct person p = {.name = MK_STR("Ana"), .age = 30};
    assert_int_equal(merge_person("{\"name\":null,\"age\":151,\"mood\":null,\"place\":{\"rent\":3},"
                                  "\"places\":[{\"rent\":3}]}",
                                  &p),
                     -EINVAL);
    assert_str(complaints(), "line 1, column 9: `name` must be a string of 1 to 10 characters\n"
                             "line 1, column 20: `age` must be an integer from 0 to 150\n"
                             "line 1, column 31: `mood` must be an integer from -128 to 127\n"
                             "line 1, column 44: `place.street` is missing: it must be a string\n"
                             "line 1, column 65: `places[0].street` is missing: it must be a string\n");
}

static void json_errors_have_positions(void **state)
{
    (void)state;
    struct person p;
    assert_int_equal(
        read_person("{\"name\": \"\",\n  \"age\": 151, \"mood\": 200,\n  \"color\": \"\xc3\xa4\", "
                    "\"tags\": [\"a\", 1, \"c\", \"d\"],\n \"numbers\": [10], \"places\": [{\"rent\": "
                    "0}], \"x/y\": [[{}]], \"age\": 1}",
                    &p),
        -EINVAL);
    assert_str(complaints(), "line 1, column 10: `name` must be a string of 1 to 10 characters\n"
                             "line 2, column 10: `age` must be an integer from 0 to 150\n"
                             "line 2, column 23: `mood` must be an integer from -128 to 127\n"
                             "line 3, column 12: `color` must be one of \"red\", \"green\"\n"
                             "line 3, column 31: `tags[1]` must be a string\n"
                             "line 3, column 25: `tags` must be a list of at most 3 elements\n"
                             "line 4, column 14: `numbers[0]` must be an integer from -2 to 9\n"
                             "line 4, column 39: `places[0].rent` must be a number from 0.5 to 99\n"
                             "line 4, column 30: `places[0].street` is missing: it must be a string\n"
                             "line 4, column 44: `x/y` is unknown\n"
                             "line 4, column 59: `age` occurs more than once\n");
    assert_str(errors.items[8].pointer, "/places/0/street");
    assert_str(errors.items[9].pointer, "/x~1y");
}

/* In truncated text, fields that seem to be missing may be in the lost part: only the syntax error counts. */
static void json_syntax_error_is_reported_alone(void **state)
{
    struct person p = {0};
    (void)state;
    assert_int_equal(read_person("{\"name\":7,\"places\":[", &p), -EBADMSG);
    assert_int_equal(errors.n, 1);
    assert_int_equal(errors.items[0].pointer.len, 0);
    assert_int_equal(errors.items[0].column, 21);
    assert_string_equal(errors.items[0].code, "syntax");
    char many[2048] = "{";
    struct mk_buf out = mk_buf_fixed(many, sizeof many - 1);
    mk_buf_add(&out, MK_STR("{"));
    for (unsigned i = 0; i < DUDA_VALIDATION_ERRORS_MAX; i++)
        mk_buf_addf(&out, "\"unknown%u\":1,", i);
    many[out.len] = '\0';
    assert_int_equal(read_person(many, &p), -EINVAL);
    assert_int_equal(errors.n, DUDA_VALIDATION_ERRORS_MAX);
}

static void json_number_of_errors_is_limited(void **state)
{
    (void)state;
    struct person p;
    assert_int_equal(
        read_person("{\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,"
                    "\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1}",
                    &p),
        -EINVAL);
    assert_int_equal(errors.n, DUDA_VALIDATION_ERRORS_MAX);
}

static const char *check_span_order(const void *at)
{
    const int64_t *both = at;
    return both[0] < both[1] ? NULL : "`end` must be after `begin`";
}

struct span {
    int64_t begin, end;
};

static void json_schema_check_runs_on_whole_struct(void **state)
{
    (void)state;
    static const struct duda_schema_field members[] = {DUDA_INTEGER(struct span, begin),
                                                       DUDA_INTEGER(struct span, end)};
    static const struct duda_schema shape =
        DUDA_SCHEMA(struct span, members, .validate = check_span_order, .allow_unknown = true);
    struct span s;
    assert_int_equal(
        duda_json_read(MK_STR(" {\"begin\":2,\"x\":{},\"end\":2}"), &shape, &pool, NULL, &s, &errors),
        -EINVAL);
    assert_str(complaints(), "line 1, column 2: `end` must be after `begin`\n");
    struct span *list;
    size_t n;
    assert_int_equal(
        duda_json_read_list(MK_STR("[{\"begin\":-9223372036854775808,\"end\":2},{\"begin\":1,\"end\":3}]"),
                            &shape, &pool, NULL, &list, &n, &errors),
        0);
    assert_int_equal(n, 2);
    assert_true(list[0].begin == INT64_MIN && list[1].end == 3);
    assert_int_equal(duda_json_read_list(MK_STR("{}"), &shape, &pool, NULL, &list, &n, &errors), -EINVAL);
    assert_str(complaints(), "line 1, column 1: the content must be a list\n");
}

/* ---- Values without a schema ---- */

static int read_any(const char *text, size_t len, struct duda_value *v)
{
    return duda_json_read_value(mk_str_of(text, len), &pool, NULL, v, &errors);
}

static void json_valid_texts_are_parsed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {" [ ] ", "[]"},
        {"{\"a\":{},\"b\":[null,true,false]}", NULL},
        {"\"\\u00e4\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\\\\\\"\"",
         "\"\xc3\xa4\xf0\x9f\x98\x80/\\u0008\\u000c\\u000a\\u000d\\u0009\\\\\\\"\""},
        {"\"\\u0000\"", "\"\\u0000\""},
        {"0", NULL},
        {"-0", "0"},
        {"-0.0", NULL},
        {"9223372036854775807", NULL},
        {"-9223372036854775808", NULL},
        {"-9223372036854775809", "-9.223372036854776e+18"},
        {"0.1", NULL},
        {"1e3", "1000"},
        {"1E-7", "1e-07"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"\t\r\n 1 ", "1"},
        {"\"\x7f\"", "\"\\u007f\""},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct duda_value v;
        if (read_any(cases[i][0], strlen(cases[i][0]), &v) != 0)
            fail_msg("%s: %.*s", cases[i][0], MK_STR_ARG(complaints()));
        assert_str(written(&v), cases[i][1] ? cases[i][1] : cases[i][0]);
    }
}

static void json_malformed_texts_are_rejected(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{a:1}",
        "{1:2}",
        "{\"a\" 1}",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12G4\"",
        "\"\n\"",
        "\"\x01\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "01",
        "1.",
        ".1",
        "-",
        "+1",
        "1e",
        "1e+",
        "0x1",
        "1.2.3",
        "nul",
        "True",
        "tru",
        "NaN",
        "Infinity",
        "1 2",
        "[]]",
        "// a\n1",
        "'a'",
        ("\xef\xbb\xbf"
         "1"),
        "\"\t\"",
        "[1}",
        "{\"a\":1]",
        "\f1",
        "--1",
        "1a",
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct duda_value v;
        if (read_any(cases[i], strlen(cases[i]), &v) != -EBADMSG)
            fail_msg("%s is accepted", cases[i]);
        assert_int_equal(errors.n, 1);
        struct person p;
        assert_int_equal(read_person(cases[i], &p), -EBADMSG);
    }
    struct duda_value v;
    assert_int_equal(read_any("\0", 1, &v), -EBADMSG);
    assert_int_equal(read_any("1\0", 2, &v), -EBADMSG);
}

/* Programs differ in how they treat duplicate names, so the parser rejects them. */
static void json_duplicate_names_are_rejected(void **state)
{
    static const struct {
        const char *text, *complaint;
        int error;
    } cases[] = {
        {"{\"a\":1,\"b\":2,\"a\":3}", "line 1, column 14: `a` occurs more than once\n", -EINVAL},
        {"{\"role\":1,\n\"r\\u006fle\":2}", "line 2, column 1: `role` occurs more than once\n", -EINVAL},
        {"[{\"x\":{\"\":1,\"\":2}}]", "line 1, column 13: `` occurs more than once\n", -EINVAL},
        {"{\"role\\u0000x\":1}", "line 1, column 2: a name must not contain NUL\n", -EBADMSG},
        {"{\"raw\":{\"a\\u0000\":1}}", "line 1, column 9: a name must not contain NUL\n", -EBADMSG},
        {"{\"raw\":[[{ \"a\":1, \"\\u0000\":1}]]}", "line 1, column 19: a name must not contain NUL\n",
         -EBADMSG},
    };
    struct duda_value v;
    struct person p;
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        assert_int_equal(read_any(cases[i].text, strlen(cases[i].text), &v), cases[i].error);
        assert_str(complaints(), cases[i].complaint);
        assert_int_not_equal(read_person(cases[i].text, &p), 0);
        if (cases[i].error == -EBADMSG)
            assert_int_equal(read_person(cases[i].text, &p), -EBADMSG);
    }
    static const char fine[] = "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}],\"A\":\"\\u0000\"}";
    assert_int_equal(read_any(fine, sizeof fine - 1, &v), 0);
}

static void json_limits_are_enforced(void **state)
{
    (void)state;
    struct duda_value v;
    char deep[256];
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    const struct mk_json_limits all = {.depth = 1000}, few = {.items = 3}, small = {.size = 4};
    assert_int_equal(duda_json_read_value(mk_str_of(deep, 128), &pool, &all, &v, &errors), 0);
    assert_int_equal(read_any(deep, 128, &v), -EMSGSIZE);
    assert_int_equal(duda_json_read_value(MK_STR("[1,2,3]"), &pool, &few, &v, &errors), 0);
    assert_int_equal(duda_json_read_value(MK_STR("[1,2,3,4]"), &pool, &few, &v, &errors), -EMSGSIZE);
    assert_int_equal(duda_json_read_value(MK_STR("12345"), &pool, &small, &v, &errors), -EMSGSIZE);
    assert_int_equal(read_any("1e400", 5, &v), -EINVAL);
    assert_int_equal(read_any("{\"a\":-1e400}", 12, &v), -EINVAL);
    /* Skipped values also count toward the limits. */
    struct person p;
    assert_int_equal(duda_json_read(MK_STR("{\"raw\":[1,2,3]}"), &person_shape, &pool, &few, &p, &errors),
                     -EMSGSIZE);
    memmove(deep + 7, deep, 128);
    memcpy(deep, "{\"raw\":", 7);
    assert_int_equal(duda_json_read(mk_str_of(deep, 135), &person_shape, &pool, &all, &p, &errors),
                     -EMSGSIZE);
}

static void json_without_memory_fails(void **state)
{
    (void)state;
    static const char text[] = "{\"name\":\"A\\n\",\"age\":\"x\",\"tags\":[\"\\t\"],\"places\":[{}]}";
    struct person p;
    struct duda_value v;
    for (size_t n = 0; n < 12; n++) {
        pool_free();
        pool_left = n;
        memset(&p, 0, sizeof p);
        int e = duda_json_read(mk_str_from_c(text), &person_shape, &pool, NULL, &p, &errors);
        assert_true(e == -ENOMEM || e == -EINVAL);
        pool_left = n;
        e = duda_json_read_value(mk_str_from_c(text), &pool, NULL, &v, &errors);
        assert_true(e == -ENOMEM || (e == 0 && n > 8));
    }
}

static void json_numbers_round_trip(void **state)
{
    (void)state;
    static const struct {
        double n;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1.0 / 3, "0.3333333333333333"},
                 {5e-324, "4.94065645841247e-324"},
                 {100, "100"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {-2.5, "-2.5"},
                 {(double)INFINITY, "null"},
                 {(double)NAN, "null"},
                 {0.30000000000000004, "0.30000000000000004"}};
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct duda_value v = duda_value_number(cases[i].n);
        assert_str(written(&v), cases[i].text);
    }
}

static void json_values_are_written(void **state)
{
    (void)state;
    const struct duda_value inner[] = {duda_value_integer(-1), duda_value_null(), duda_value_cstr(NULL),
                                       duda_value_text(MK_STR("\xff</script>"))};
    const struct duda_entry map[] = {{"list", duda_value_list(inner, 4)},
                                     {"a \"b\"", duda_value_unsigned(UINT64_MAX)},
                                     {"none", duda_value_null()},
                                     {"empty", duda_value_structs(&person_shape, NULL, 0)}};
    struct duda_value v = duda_value_map(map, MK_LEN(map));
    assert_str(written(&v),
               "{\"list\":[-1,null,null,\"\\u00ff</script>\"],\"a \\\"b\\\"\":18446744073709551615,"
               "\"none\":null,\"empty\":[]}");
    struct duda_value itself[1];
    itself[0] = duda_value_list(itself, 1); /* the writer truncates a recursive value */
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    duda_json_write(&out, itself);
    assert_int_equal(out.len, 2 * MK_JSON_DEPTH_MAX + 4);
}

struct part {
    int64_t first, second;
    bool has_first;
};

static const struct duda_schema_field part_members[] = {
    DUDA_INTEGER(struct part, first, .json_name = "the \"first\"", DUDA_OPTIONAL(struct part, has_first)),
    DUDA_INTEGER(struct part, second),
};

/* ---- Lists of structs, which the writer formats differently from a single struct ---- */

static void assert_list_equals_structs(const struct duda_schema *schema, const void *structs, size_t n)
{
    static char expected[32768];
    struct mk_buf singles = mk_buf_fixed(expected, sizeof expected);
    mk_buf_add_char(&singles, '[');
    for (size_t i = 0; i < n; i++) {
        struct duda_value v = duda_value_struct(schema, (const char *)structs + i * schema->size);
        if (i)
            mk_buf_add_char(&singles, ',');
        duda_json_write(&singles, &v);
    }
    mk_buf_add_char(&singles, ']');
    struct duda_value v = duda_value_structs(schema, structs, n);
    for (size_t size = 0; size < singles.len + 256; size++) {
        char *exact = malloc(size + 1); /* the sanitizer reports bytes that do not fit */
        assert_non_null(exact);
        struct mk_buf list = mk_buf_fixed(exact + 1, size);
        duda_json_write(&list, &v);
        assert_int_equal(list.failed, size < singles.len);
        if (!list.failed) {
            assert_int_equal(list.len, singles.len);
            assert_memory_equal(list.p, singles.p, list.len);
        }
        free(exact);
    }
}

/* The writer formats names once for all elements, unless there are too many names, or they are too long. */
static void json_lists_of_structs_are_written(void **state)
{
    (void)state;
    static const struct part parts[] = {{1, -2, true}, {3, 4, false}, {5, 6, true}};
    const struct duda_schema shape = DUDA_SCHEMA(struct part, part_members);
    struct duda_value v = duda_value_structs(&shape, parts, 3);
    assert_str(written(&v), "[{\"the \\\"first\\\"\":1,\"second\":-2},{\"second\":4},"
                            "{\"the \\\"first\\\"\":5,\"second\":6}]");
    struct duda_schema_field many[70], named = part_members[1];
    for (size_t i = 0; i < MK_LEN(many); i++)
        many[i] = named;
    const struct duda_schema wide = {
        .fields = many, .n = MK_LEN(many), .size = sizeof(struct part), .field_size = sizeof named};
    v = duda_value_structs(&wide, parts, 2);
    mk_str text = written(&v);
    assert_int_equal(text.len, 2 * (70 * strlen("\"second\":4,") + 1) + 70 + 3);
    char long_name[900];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    named.json_name = long_name;
    const struct duda_schema lengthy = {
        .fields = &named, .n = 1, .size = sizeof(struct part), .field_size = sizeof named};
    v = duda_value_structs(&lengthy, parts, 2);
    assert_int_equal(written(&v).len, 2 * (sizeof long_name - 1 + 6) + 3 + 1);
    long_name[40] = 0;
    assert_list_equals_structs(&lengthy, parts, 2);
    const struct duda_schema nothing = {
        .fields = &named, .n = 0, .size = sizeof(struct part), .field_size = sizeof named};
    v = duda_value_structs(&nothing, parts, 2);
    assert_str(written(&v), "[{},{}]");
}

/* Each byte, at each position of strings of each length up to 40. */
static void json_list_escapes_strings_like_a_struct(void **state)
{
    (void)state;
    char text[40];
    mk_str tags[2];
    for (unsigned c = 0; c < 256; c++)
        for (size_t len = 0; len <= sizeof text; len++) {
            memset(text, 'a', sizeof text);
            if (len)
                text[(c * 7 + len) % len] = (char)c;
            mk_str string = mk_str_of(text, len);
            tags[0] = tags[1] = string;
            const struct person people[] = {{.name = string, .tags = tags, .n_tags = 2}, {.name = string}};
            struct duda_value list = duda_value_structs(&person_shape, people, 2),
                              single = duda_value_struct(&person_shape, people);
            char expected[1024];
            struct mk_buf out = mk_buf_fixed(expected, sizeof expected);
            duda_json_write(&out, &single);
            mk_str all = written(&list);
            assert_memory_equal(all.p + 1, expected, out.len);
        }
}

static void json_list_writes_all_members_like_structs(void **state)
{
    (void)state;
    mk_str tags[] = {MK_STR("red"), {0}, MK_STR(""), MK_STR("a \"long\" tag with \xc3\xa9")};
    struct person_address places[] = {{MK_STR("x"), 1.5}, {{0}, 2}, {MK_STR("a street with a long name"), 3}};
    int64_t numbers[] = {0, -1, 9, 10, 99, 100, 12345, INT64_MIN, INT64_MAX};
    static char long_text[700];
    memset(long_text, 'l', sizeof long_text);
    const struct person people[] = {
        {.name = mk_str_of(long_text, sizeof long_text), .age = 1, .mood = 1},
        {.name = MK_STR("Ana"),
         .age = UINT32_MAX,
         .admin = true,
         .mood = -128,
         .color = 1,
         .big = UINT64_MAX},
        {.name = {0}, .mood = 127, .color = 7, .tags = tags, .n_tags = MK_LEN(tags)},
        {.name = MK_STR(""),
         .has_place = true,
         .place = places[2],
         .places = places,
         .n_places = MK_LEN(places)},
        {.name = MK_STR("\x01"), .has_place = true, .numbers = numbers, .n_numbers = MK_LEN(numbers)},
        {.name = MK_STR("raw"), .raw = MK_STR("{\"a\":[1]}"), .tags = tags, .n_tags = 1},
    };
    assert_list_equals_structs(&person_shape, people, MK_LEN(people));
    assert_list_equals_structs(&person_shape, people, 2);
}

/* Nine structs with schemas of their own: more than the writer prepares. */
struct nine {
    struct part a, b, c, d, e, f, g, h, i;
};

static void json_list_with_many_nested_structs_is_complete(void **state)
{
    (void)state;
    struct duda_schema inner[9];
    struct duda_schema_field members[9];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    for (size_t i = 0; i < MK_LEN(inner); i++) {
        inner[i] = (struct duda_schema)DUDA_SCHEMA(struct part, part_members);
        members[i] = (struct duda_schema_field)DUDA_OBJECT(struct nine, a, &inner[i]);
        members[i].offset = i * sizeof(struct part);
        members[i].name = names[i];
    }
    const struct duda_schema outer = DUDA_SCHEMA(struct nine, members);
    struct nine structs[3] = {{.a = {1, 2, true}, .i = {3, 4, true}}, {.e = {INT64_MIN, 5, true}}};
    assert_list_equals_structs(&outer, structs, MK_LEN(structs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(json_struct_round_trips, NULL, pool_free),
        fixture_test(json_absent_member_keeps_value_and_flag, NULL, pool_free),
        fixture_test(json_null_clears_members_that_can_be_empty, NULL, pool_free),
        fixture_test(json_merge_changes_only_sent_members, NULL, pool_free),
        fixture_test(json_merge_checks_what_it_stores, NULL, pool_free),
        fixture_test(json_errors_have_positions, NULL, pool_free),
        fixture_test(json_syntax_error_is_reported_alone, NULL, pool_free),
        fixture_test(json_number_of_errors_is_limited, NULL, pool_free),
        fixture_test(json_schema_check_runs_on_whole_struct, NULL, pool_free),
        fixture_test(json_valid_texts_are_parsed, NULL, pool_free),
        fixture_test(json_malformed_texts_are_rejected, NULL, pool_free),
        fixture_test(json_duplicate_names_are_rejected, NULL, pool_free),
        fixture_test(json_limits_are_enforced, NULL, pool_free),
        fixture_test(json_without_memory_fails, NULL, pool_free),
        fixture_test(json_numbers_round_trip, NULL, pool_free),
        fixture_test(json_values_are_written, NULL, pool_free),
        fixture_test(json_lists_of_structs_are_written, NULL, pool_free),
        fixture_test(json_list_escapes_strings_like_a_struct, NULL, pool_free),
        fixture_test(json_list_writes_all_members_like_structs, NULL, pool_free),
        fixture_test(json_list_with_many_nested_structs_is_complete, NULL, pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
