/* SPDX-License-Identifier: Apache-2.0 */
#include "files/mime.h"

#include "unit/fixtures.h"
#include "unit/test.h"

static struct mk_arena arena;
static struct mk_mime mime;

static void setup(void)
{
    arena_setup(&arena);
    mk_mime_init(&mime, &arena, MK_STR("x/default"));
}

static void expect(const char *name, const char *type)
{
    mk_str found = mk_mime_find(&mime, mk_str_from_c(name));
    if (!mk_str_eq(found, mk_str_from_c(type)))
        fail_msg("%s is %.*s, not %s", name, MK_STR_ARG(found), type);
}

static void mime_common_files_have_their_type(void **state)
{
    (void)state;
    expect("index.html", "text/html");
    expect("a/b/style.css", "text/css");
    expect("x.js", "text/javascript");
    expect("x.svg", "image/svg+xml");
    expect("x.woff2", "font/woff2");
    expect("x.PNG", "image/png");
    expect("x.JpG", "image/jpeg");
    expect("x.3g2", "video/3gpp2"); /* the first entry of the table */
    expect(".html", "text/html");
    expect("x.tar.gz", "application/gzip");
}

static void mime_unknown_extension_has_the_default(void **state)
{
    (void)state;
    static const char *const names[] = {"",        "x",           "html",
                                        "x.",      "x.htm l",     "x. html",
                                        "x.html ", "x.tm",        "x.nosuch",
                                        "x.ht",    "x.tml",       "x.html text/html",
                                        "x.\n",    "x.text/html", "x.0123456789abcdef0",
                                        "x.html\n"};
    for (size_t i = 0; i < MK_LEN(names); i++)
        expect(names[i], "x/default");
}

static void mime_builtin_types_are_found(void **state)
{
    (void)state;
    mk_str rest = mk_str_skip(mk_str_from_c(mk_mime_builtin), 1);
    unsigned n = 0;
    while (rest.len) {
        char name[64] = "file.";
        mk_str line = mk_str_cut(&rest, '\n'), extension = mk_str_cut(&line, ' ');
        assert_true(extension.len > 0 && extension.len <= MK_MIME_EXTENSION_MAX && line.len > 0);
        memcpy(name + 5, extension.p, extension.len);
        mk_str found = mk_mime_find(&mime, mk_str_of(name, 5 + extension.len));
        if (!mk_str_eq(found, line))
            fail_msg("%s is %.*s", name, MK_STR_ARG(found));
        n++;
    }
    assert_true(n > 100);
}

static void mime_configured_type_overrides_the_builtin(void **state)
{
    (void)state;
    char extension[] = "HTML", type[] = "x/own";
    assert_true(mk_mime_add(&mime, mk_str_from_c(extension), mk_str_from_c(type)));
    memset(extension, '?', sizeof extension - 1); /* the table copies the extension, but not the type */
    expect("a.html", "x/own");
    expect("a.HtMl", "x/own");
    expect("a.htm", "text/html");
    assert_true(mk_mime_add(&mime, MK_STR("html"), MK_STR("x/later")));
    expect("a.html", "x/later");
    assert_true(mk_mime_add(&mime, MK_STR("nosuch"), MK_STR("x/new")));
    expect("a.nosuch", "x/new");
}

static void mime_extension_length_is_limited(void **state)
{
    (void)state;
    assert_true(mk_mime_add(&mime, MK_STR("0123456789abcdef"), MK_STR("x/long")));
    assert_true(mk_mime_add(&mime, MK_STR("0123456789abcdefg"), MK_STR("x/longer")));
    expect("a.0123456789abcdef", "x/long");
    expect("a.0123456789ABCDEF", "x/long");
    expect("a.0123456789abcdefg", "x/default");
}

static void mime_type_needs_type_and_subtype(void **state)
{
    (void)state;
    static const char *const good[] = {"text/html", "image/svg+xml", "text/html;charset=utf-8",
                                       "text/html; charset=\"utf 8\" ; q=1", "x/y"};
    static const char *const bad[] = {
        "",           "text",     "/",      "text/",    "/html",   "text/html/x", "text/ html",
        "te xt/x",    "a/b c",    "a/b; c", "a/b;",     "a/b; c=", "a/b; =c",     "a/b; c=\"",
        "a/b; c=\"d", "a/b, c/d", "a/b;c",  "a/b;;c=d", "\xff/x",  "a/b; c=d e",  "a/b; c=\"\"d"};
    for (size_t i = 0; i < MK_LEN(good); i++)
        if (!mk_mime_is_type(mk_str_from_c(good[i])))
            fail_msg("`%s` is a type", good[i]);
    for (size_t i = 0; i < MK_LEN(bad); i++)
        if (mk_mime_is_type(mk_str_from_c(bad[i])))
            fail_msg("`%s` is not a type", bad[i]);
}

static void mime_text_types_get_a_charset(void **state)
{
    (void)state;
    assert_true(mk_mime_wants_charset(MK_STR("text/html")));
    assert_true(mk_mime_wants_charset(MK_STR("text/javascript")));
    assert_false(mk_mime_wants_charset(MK_STR("text/html; charset=latin1")));
    assert_false(mk_mime_wants_charset(MK_STR("image/png")));
    assert_false(mk_mime_wants_charset(MK_STR("application/text/x")));
    assert_false(mk_mime_wants_charset(MK_STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(mime_common_files_have_their_type, setup),
        fixture_test(mime_unknown_extension_has_the_default, setup),
        fixture_test(mime_builtin_types_are_found, setup),
        fixture_test(mime_configured_type_overrides_the_builtin, setup),
        fixture_test(mime_extension_length_is_limited, setup),
        cmocka_unit_test(mime_type_needs_type_and_subtype),
        fixture_test(mime_text_types_get_a_charset, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
