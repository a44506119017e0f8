/* SPDX-License-Identifier: Apache-2.0 */
#include "http/path_variants.h"

#include <monkey/text.h>

#include "http/path.h"
#include "unit/test.h"

struct found {
    struct mk_arena arena;
    char buffer[512];
    mk_str path;
    struct mk_path_variants v;
};

static const mk_str endings[] = {MK_STR_INIT(".py"), MK_STR_INIT(".cgi")};
static const struct mk_path_scripts scripts = {endings, MK_LEN(endings), MK_STR_INIT("bin/run")};

static void find(struct found *f, const char *raw)
{
    unsigned flags;
    mk_arena_init(&f->arena, NULL);
    assert_int_equal(mk_path_decode(mk_str_from_c(raw), f->buffer, &f->path, &flags), 0);
    assert_int_equal(mk_path_variants(f->path, flags & MK_PATH_ENCODED_SLASH, &scripts, &f->arena, &f->v), 0);
    assert_in_range(f->v.n, 0, MK_PATH_VARIANTS_MAX);
}

static bool has(const struct found *f, const char *variant)
{
    for (size_t i = 0; i < f->v.n; i++)
        if (mk_str_eq(f->v.list[i], mk_str_from_c(variant)))
            return true;
    return false;
}

static void check(const char *raw, const char *variant)
{
    struct found f;
    find(&f, raw);
    if (!has(&f, variant))
        fail_msg("%s is never read as %s", raw, variant);
    mk_arena_fini(&f.arena);
}

static void path_variants_of_ambiguous_paths(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/admin%2Fsecret", "/admin/secret"},
        {"/admin%2fsecret", "/admin/secret"},
        {"/%2Fadmin/secret", "/admin/secret"},
        {"/a%2F%2Fb", "/a/b"},
        {"/admin%5Csecret", "/admin/secret"},
        {"/admin\\secret", "/admin/secret"},
        {"/admin;x/secret", "/admin/secret"},
        {"/admin%3Bx=1/secret", "/admin/secret"},
        {"/;x/admin", "/admin"},
        {"/a/..;/admin", "/admin"},
        {"/a/..;x=1/admin", "/admin"},
        {"/a/..%5Cadmin", "/admin"},
        {"/a/..%20/admin", "/admin"},
        {"/admin./secret", "/admin/secret"},
        {"/admin.", "/admin"},
        {"/admin...", "/admin"},
        {"/admin%20", "/admin"},
        {"/%20admin", "/admin"},
        {"/admin%09/secret", "/admin/secret"},
        {"/admin%0a", "/admin"},
        {"/admin%7f", "/admin"},
        {"/admin. .", "/admin"},
        {"/admin%c2%a0", "/admin"},
        {"/%e3%80%80admin%e2%80%8a/x", "/admin/x"},
        {"/admin%ef%bb%bf/x", "/admin/x"},
        {"/admin%a0/x", "/admin/x"},
        {"/%85%a0admin", "/admin"},
        {"/x/%c2%a0..%c2%a0/admin", "/admin"},
        {"/admin%25a0", "/admin"},
        {"/%2561dmin", "/admin"},
        {"/admin%252Fsecret", "/admin/secret"},
        {"/admin%252fsecret", "/admin/secret"},
        {"/admin%253Bx/secret", "/admin/secret"},
        {"/a/%252e%252e/admin", "/admin"},
        {"/a/%252e%252e%252fadmin", "/admin"},
        {"/admin%2500.png", "/admin"},
        {"/admin%c0%afsecret", "/admin/secret"},
        {"/admin%e0%80%afsecret", "/admin/secret"},
        {"/a/%c0%ae%c0%ae/admin", "/admin"},
        {"/%c1%a1dmin", "/admin"},
        {"/admin%3f.png", "/admin"},
        {"/admin%23.png", "/admin"},
        {"/admin%253f.png", "/admin"},
        {"/%2Fhost/admin", "/admin"},
        {"/%5C%5Chost/admin", "/admin"},
        {"/%252fhost/admin", "/admin"},
        {"/%2Fhost", "/"},
        {"/admin%2F", "/admin/"},
        {"/a%2Fb;c%2Fd", "/a/b"},     /* parameters are removed first */
        {"/a%2Fb;c%2Fd", "/a/b/d"},   /* encoded slashes are decoded first */
        {"/a%2Fb;c%2Fd", "/a/b;c/d"}, /* no parameters are removed */
        {"/admin;x%2Fy/secret", "/admin/secret"},
        {"/a%252fb;c%252fd", "/a/b"},
        {"/a%252fb%3bc%252fd", "/a/b"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i][0], cases[i][1]);
}

static void path_variants_of_unusual_decoders(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/admin%f0%80%80%afsecret", "/admin/secret"},
        {"/admin%f8%80%80%80%afsecret", "/admin/secret"},
        {"/admin%fc%80%80%80%80%afsecret", "/admin/secret"},
        {"/%f0%80%81%a1dmin", "/admin"},
        {"/admin%25c0%25afsecret", "/admin/secret"},
        {"/admin%25u002fsecret", "/admin/secret"},
        {"/%25U0061dmin", "/admin"},
        {"/ad%09min", "/admin"},
        {"/ad%0d%0amin/%2573ecret", "/admin/secret"},
        {"/ad%2509min", "/admin"},
        {"/%09%5chost/admin", "/admin"},
        {"/admin::$DATA", "/admin"},
        {"/admin:$i30:$INDEX_ALLOCATION/secret", "/admin/secret"},
        {"/admin%3a%3a$DATA.%20/secret", "/admin/secret"},
        {"/(S(x))/admin/secret", "/admin/secret"},
        {"/admin/(A(a)S(b))/secret;x", "/admin/secret"},
        /* some programs continue to parse after the end of the path */
        {"/x%3f/admin;y.php", "/x?/admin"},
        {"/x%3f/..%20/admin", "/admin"},
        {"/x%2500/%252e%252e/admin", "/admin"},
        {"/x%2500.png", "/x"},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i][0], cases[i][1]);
}

static void path_variants_of_plain_path_are_none(void **state)
{
    (void)state;
    static const char *const cases[] = {"/",
                                        "/a/b.c",
                                        "/.well-known/x",
                                        "/a/.b/c..d/e",
                                        "/a%20b/c%20d",
                                        "/caf%C3%A9",
                                        "/%e0%b8%81%e2%82%ac",
                                        "/100%25",
                                        "/100%25%20sure",
                                        "/%25zz",
                                        "//a//b",
                                        "/a/../b",
                                        "/a:b@c,d=e+f&g!h$i'j(k)l*m",
                                        "/a|b",
                                        "/%FF%FE",
                                        "/%e0%a0%80",
                                        "/voil%c3%a0",
                                        "/%c3%a0/x",
                                        "/%e2%82%ac/%c5%85",
                                        "/a%c2%a0b"};
    struct found f;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        find(&f, cases[i]);
        if (f.v.n)
            fail_msg("%s has a variant", cases[i]);
        mk_arena_fini(&f.arena);
    }
    assert_false(mk_path_may_vary(MK_STR("*"), false, &scripts));
    assert_false(mk_path_may_vary(MK_STR(""), false, &scripts));
}

/* mk_path_decode() leaves no dot segments and no empty segments. */
static bool is_decoded(mk_str path)
{
    char buffer[32];
    return mk_str_eq(mk_path_interpret(path, 0, buffer), path);
}

static bool is_read_otherwise(mk_str path)
{
    char buffer[32];
    for (unsigned how = 1; how <= MK_PATH_READING_ALL; how++)
        if (!mk_str_eq(mk_path_interpret(path, how, buffer), path))
            return true;
    return !mk_str_eq(mk_path_decode_again(path, buffer), path);
}

/* mk_path_may_vary() checks single characters to decide whether to call the other functions at all. */
static void path_may_vary_covers_every_variant(void **state)
{
    (void)state;
    static const char bytes[] = "a.%2fE :$();\\?#/\x7f\t\xc0\xaf\xe3\x80\xa0\xc3";
    char text[6] = "/";
    for (unsigned c = 1; c < 256; c++)
        for (size_t i = 0; i + 1 < sizeof bytes; i++)
            for (size_t k = 0; k + 1 < sizeof bytes; k++)
                for (size_t at = 1; at < 4; at++) {
                    const char others[] = {bytes[i], bytes[k]};
                    for (size_t n = 1, o = 0; n < 4; n++)
                        text[n] = n == at ? (char)c : others[o++];
                    mk_str path = mk_str_of(text, 4);
                    if (is_decoded(path) && is_read_otherwise(path) && !mk_path_may_vary(path, false, NULL))
                        fail_msg("%02x %02x %02x", (unsigned char)text[1], (unsigned char)text[2],
                                 (unsigned char)text[3]);
                }
}

static bool hides(const char *raw)
{
    struct found f;
    find(&f, raw);
    bool is = mk_path_hides_dot_segments(f.path);
    mk_arena_fini(&f.arena);
    return is;
}

static void path_variants_find_hidden_dot_segments(void **state)
{
    (void)state;
    static const char *const hidden[] = {
        "/a/..;/b",        "/a/..%3bx/b",        "/a/..%20/b",       "/a/%20../b",      "/a/..%09/b",
        "/a/.%09./b",      "/a/..%5cb",          "/a\\..\\b",        "/a/%252e%252e/b", "/a/..%252fb",
        "/a%252f..%252fb", "/a/%c0%ae%c0%ae/b",  "/a/%25c0%25ae./b", "/a/.%25u002e",    "/a/..%2500",
        "/a/..%3fx",       "/a/..%23",           "/a/..::$DATA/b",   "/a/..%c2%a0/b",   "/a/..%20./b",
        "/x%3f/..%20/b",   "/a/%f0%80%80%ae./b", "/a/..;b%2fc",      "/.%252e.",        "/%2500..%23",
        "/%2507%2500..",
    };
    static const char *const plain[] = {"/",         "/a/../b",    "/a/.../b", "/a/..b",       "/a/b..",
                                        "/a/. /b",   "/a/b;..",    "/a;../b",  "/a/v1..v2%20", "/a/%3f..",
                                        "/a%2Fb/.c", "/a/%2e%2e/b"};
    for (size_t i = 0; i < MK_LEN(hidden); i++)
        if (!hides(hidden[i]))
            fail_msg("%s hides nothing", hidden[i]);
    for (size_t i = 0; i < MK_LEN(plain); i++)
        if (hides(plain[i]))
            fail_msg("%s hides dots", plain[i]);
}

static void path_variants_find_leading_slash(void **state)
{
    (void)state;
    static const char *const slashes[] = {"%2Fx",      "%2fx",   "\\x",  "\t%2fx", "%5cx",
                                          "\xc0\xafx", "%c0%af", "\n\\", "%u002f"};
    static const char *const others[] = {"", "x", "x/y", "%25", "%2", " %2f", "caf\xc3\xa9"};
    for (size_t i = 0; i < MK_LEN(slashes); i++)
        if (!mk_path_may_begin_with_slash(mk_str_from_c(slashes[i])))
            fail_msg("%s begins with none", slashes[i]);
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (mk_path_may_begin_with_slash(mk_str_from_c(others[i])))
            fail_msg("%s begins with one", others[i]);
}

static void path_variants_are_unique(void **state)
{
    (void)state;
    struct found f;
    find(&f, "/a%2Fb");
    assert_int_equal(f.v.n, 1);
    mk_arena_fini(&f.arena);
    find(&f, "/%2Fa;%255C%252F%3f./%c0%af%2Fx%20;%2e/%2525%5c");
    assert_in_range(f.v.n, 5, MK_PATH_VARIANTS_MAX);
    for (size_t i = 0; i < f.v.n; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(mk_str_eq(f.v.list[i], f.v.list[k]));
    mk_arena_fini(&f.arena);
}

static void path_variants_are_decoded_at_most_twice(void **state)
{
    (void)state;
    struct found f;
    find(&f, "/%252561dmin");
    assert_false(has(&f, "/admin"));
    assert_true(has(&f, "/%61dmin"));
    mk_arena_fini(&f.arena);
}

static void path_variants_include_path_info(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/index.php/admin/secret", "/admin/secret"},
        {"/index.PHP/admin", "/admin"},
        {"/%69ndex%2ephp/admin", "/admin"},
        {"/index.php%2Fadmin", "/admin"},
        {"/index.php/admin%2Fsecret", "/admin/secret"},
        {"/index.php;x=1/admin", "/admin"},
        {"/index.php%20/admin", "/admin"},
        {"/index.php::$DATA/admin", "/admin"},
        {"/index%252ephp/%2561dmin", "/admin"},
        {"/index.php/%2fhost/admin", "/admin"},
        {"/index.php/admin;x/secret", "/admin/secret"},
        {"/index.phpadmin/secret", "/admin/secret"},
        {"/index.php_profiler", "/_profiler"},
        {"/index.php5/admin", "/admin"},
        {"/x.phtml/admin", "/admin"},
        {"/x.phar/admin", "/admin"},
        {"/index.php%2F/host/admin", "/admin"},
        {"/index.php%5Cadmin", "/admin"},
        {"/index.php%20admin", "/admin"},
        {"/shop/index.php/admin", "/admin"},
        {"/shop/index.php/admin", "/shop/admin"},
        {"/shop/index.phpadmin", "/shop/admin"},
        {"/a.php/b.php/admin", "/admin"},
        {"/a.php/b.php/admin", "/b.php/admin"},
        {"/a.php/b.php/admin", "/a.php/admin"},
        {"/app.py/admin", "/admin"},
        {"/x/app.CGI/admin", "/x/admin"},
        {"/bin/run/admin", "/admin"},
        {"/bin%2frun/admin", "/admin"},
    };
    static const char *const whole[] = {"/index.php",  "/index.php/",   "/a.php.html",    "/a.php.bak/x",
                                        "/app.pyc",    "/app.python/x", "/phpinfo/admin", "/bin/run",
                                        "/bin/runs/x", "/x/bin/run/y",  "/index.php5",    "/xphp/admin",
                                        "/index.php5"};
    for (size_t i = 0; i < MK_LEN(cases); i++)
        check(cases[i][0], cases[i][1]);
    for (size_t i = 0; i < MK_LEN(whole); i++) {
        struct found f;
        find(&f, whole[i]);
        if (f.v.n)
            fail_msg("%s has the variant %.*s", whole[i], MK_STR_ARG(f.v.list[0]));
        mk_arena_fini(&f.arena);
    }
}

static void path_variants_list_path_info_last(void **state)
{
    struct found f;
    (void)state;
    find(&f, "/index.php;x/admin");
    assert_true(f.v.n_readings > 0 && f.v.n_readings < f.v.n);
    for (size_t i = 0; i < f.v.n; i++)
        assert_int_equal(i < f.v.n_readings, mk_str_starts(f.v.list[i], MK_STR("/index")));
    mk_arena_fini(&f.arena);
    find(&f, "/index.php/api");
    assert_int_equal(f.v.n_readings, 0);
    assert_int_equal(f.v.n, 1);
    mk_arena_fini(&f.arena);
}

static unsigned status_of(mk_str path, struct mk_path_variants *v)
{
    struct mk_arena arena;
    mk_arena_init(&arena, NULL);
    unsigned status = mk_path_variants(path, false, NULL, &arena, v);
    mk_arena_fini(&arena);
    return status;
}

static void path_variants_script_extension_may_have_wildcards(void **state)
{
    static const mk_str open_endings[] = {MK_STR_INIT(".p?"), MK_STR_INIT(".x*")};
    static const struct mk_path_scripts some = {open_endings, MK_LEN(open_endings), {0}};
    static const struct {
        const char *path;
        bool is;
    } cases[] = {
        {"/a.py/b", true},   {"/a.PL%2Fb", true},  {"/a.p/b", false}, {"/a.p%2Fb", false},
        {"/a.pyw/b", false}, {"/a.py.b/c", false}, {"/a.x/b", true},  {"/a.xyz\\b", true},
        {"/a.xyz", false},   {"/a.x", false},
    };
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        if (mk_path_has_script(mk_str_from_c(cases[i].path), &some) != cases[i].is)
            fail_msg("%s", cases[i].path);
}

/* Two limits bound the work: on the number of script combinations, and on the length of the path if it is
 * unusual after the script names. */
static void path_variants_too_many_scripts_are_rejected(void **state)
{
    (void)state;
    static char text[MK_PATH_VARIED_MAX];
    struct mk_path_variants v;
    for (size_t i = 0; i + 6 <= sizeof text; i += 6)
        memcpy(text + i, "/a.php", 6);
    assert_int_equal(status_of(mk_str_of(text, 24), &v), 0);
    assert_int_equal(status_of(mk_str_of(text, 2046), &v), 400);
    assert_int_equal(v.n, 0);
    memset(text, 'a', sizeof text);
    memcpy(text, "/a.php/b.php/;", 14);
    assert_int_equal(status_of(mk_str_of(text, sizeof text), &v), 414);
    assert_int_equal(status_of(mk_str_of(text, 300), &v), 0);
}

static void path_variants_long_ambiguous_path_is_rejected(void **state)
{
    (void)state;
    static char text[MK_PATH_VARIED_MAX + 1];
    struct mk_path_variants v;
    memset(text, 'a', sizeof text);
    text[0] = '/';
    assert_int_equal(status_of(mk_str_of(text, sizeof text), &v), 0);
    assert_int_equal(v.n, 0);
    text[1] = ';';
    assert_int_equal(status_of(mk_str_of(text, sizeof text - 1), &v), 0);
    assert_int_equal(v.n, 1);
    assert_int_equal(status_of(mk_str_of(text, sizeof text), &v), 414);
    assert_int_equal(v.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_variants_of_ambiguous_paths),
        cmocka_unit_test(path_variants_of_unusual_decoders),
        cmocka_unit_test(path_variants_of_plain_path_are_none),
        cmocka_unit_test(path_may_vary_covers_every_variant),
        cmocka_unit_test(path_variants_find_hidden_dot_segments),
        cmocka_unit_test(path_variants_find_leading_slash),
        cmocka_unit_test(path_variants_are_unique),
        cmocka_unit_test(path_variants_are_decoded_at_most_twice),
        cmocka_unit_test(path_variants_include_path_info),
        cmocka_unit_test(path_variants_list_path_info_last),
        cmocka_unit_test(path_variants_script_extension_may_have_wildcards),
        cmocka_unit_test(path_variants_too_many_scripts_are_rejected),
        cmocka_unit_test(path_variants_long_ambiguous_path_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
