/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/host.h>
#include <monkey/request.h>

#include "unit/test.h"

/* The files of a site; folders end with a slash. */
static const char *const files[] = {"/a.php", "/uploads/",   "/uploads/a.jpg", "/lib.php/", "/lib.php/b.php",
                                    "/.git/", "/.git/c.php", "/pipe.php",      NULL};

struct mk_request {
    mk_str path;
    bool encoded_slash, shows_dots;
    int fails; /* result of each mk_request_stat() */
    unsigned n_looks;
};

static unsigned n_lines; /* number of log lines */

void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
{
    assert_int_equal(level, MK_LOG_WARN);
    n_lines++;
    (void)r;
    (void)fmt;
}

const struct mk_vhost *mk_request_vhost(const struct mk_request *r)
{
    (void)r;
    return NULL;
}

mk_str mk_vhost_root(const struct mk_vhost *h)
{
    (void)h;
    return MK_STR("/root");
}

mk_str mk_request_path(const struct mk_request *r)
{
    return r->path;
}

bool mk_request_has_encoded_slash(const struct mk_request *r)
{
    return r->encoded_slash;
}

bool mk_request_shows_dot_files(const struct mk_request *r)
{
    return r->shows_dots;
}

int mk_request_stat(const struct mk_request *r, mk_str path, struct mk_file_id *id)
{
    ((struct mk_request *)(uintptr_t)r)->n_looks++;
    assert_null(id);
    if (r->fails)
        return r->fails;
    for (size_t i = 0; files[i]; i++) {
        mk_str file = mk_str_from_c(files[i]);
        bool folder = mk_str_ends(file, MK_STR("/"));
        mk_str name = mk_str_first(file, file.len - folder);
        if (mk_str_eq(name, path))
            return folder                                 ? MK_FILE_FOLDER
                   : mk_str_eq(name, MK_STR("/pipe.php")) ? MK_FILE_OTHER
                                                          : MK_FILE_REGULAR;
        if (!folder && mk_str_starts(path, name) && path.p[name.len] == '/')
            return -ENOTDIR;
    }
    return -ENOENT;
}

static unsigned find(const char *path, mk_str *name, mk_str *info)
{
    struct mk_request r = {.path = mk_str_from_c(path)};
    return mk_request_find_script(&r, MK_STR(".php"), name, info);
}

static void expect(const char *path, unsigned status, const char *want_name, const char *want_info)
{
    mk_str name, info;
    assert_int_equal(find(path, &name, &info), status);
    assert_true(mk_str_eq(name, mk_str_from_c(want_name)));
    assert_true(mk_str_eq(info, mk_str_from_c(want_info)));
}

static void script_is_first_file_with_extension(void **state)
{
    (void)state;
    expect("/a.php", 0, "/a.php", "");
    expect("/a.php/", 0, "/a.php", "/");
    expect("/a.php/x/y.php", 0, "/a.php", "/x/y.php");
    expect("/lib.php/b.php/z", 0, "/lib.php/b.php", "/z");
}

/* Expects that the path leads to a script without an extension, after this many lookups. */
static void expect_without(const char *path, unsigned status, const char *want_name, const char *want_info,
                           unsigned n_looks)
{
    struct mk_request r = {.path = mk_str_from_c(path)};
    mk_str name, info;
    assert_int_equal(mk_request_find_script(&r, MK_STR(""), &name, &info), status);
    assert_int_equal(r.n_looks, n_looks);
    if (status)
        return;
    assert_true(mk_str_eq(name, mk_str_from_c(want_name)));
    assert_true(mk_str_eq(info, mk_str_from_c(want_info)));
}

static void script_without_extension_is_any_file(void **state)
{
    (void)state;
    expect_without("/a.php", 0, "/a.php", "", 1);
    expect_without("/uploads/a.jpg", 0, "/uploads/a.jpg", "", 1);
    expect_without("/uploads/a.jpg/", 0, "/uploads/a.jpg", "/", 1);
    expect_without("/uploads/a.jpg/x/y", 0, "/uploads/a.jpg", "/x/y", 3);
    expect_without("/uploads", 404, NULL, NULL, 1);
    expect_without("/uploads/none/x", 404, NULL, NULL, 1);
    expect_without("/", 404, NULL, NULL, 1);
    expect_without("/.git/c.php", 403, NULL, NULL, 1);
    expect_without("/pipe.php", 403, NULL, NULL, 1);
}

static void script_other_extension_is_never_run(void **state)
{
    mk_str name, info;
    (void)state;
    expect("/uploads/a.jpg/x.php", 404, "/uploads/a.jpg/x.php", "");
    expect("/uploads/a.jpg/x.php/y.php", 404, "/uploads/a.jpg/x.php", "/y.php");
    expect("/lib.php", 404, "/lib.php", "");
    expect("/gone.php/more", 404, "/gone.php", "/more");
    assert_int_equal(find("/uploads/a.jpg", &name, &info), 404);
    assert_null(name.p); /* no part of the path could be a script, so the next route gets the request */
    assert_int_equal(find("/", &name, &info), 404);
    assert_null(name.p);
}

static void script_hidden_file_is_forbidden(void **state)
{
    mk_str name, info;
    (void)state;
    struct mk_request hidden = {.path = MK_STR("/.git/c.php")};
    assert_int_equal(mk_request_find_script(&hidden, MK_STR(".php"), &name, &info), 403);
    hidden.shows_dots = true;
    assert_int_equal(mk_request_find_script(&hidden, MK_STR(".php"), &name, &info), 0);
}

static void script_name_ends_before_encoded_slash(void **state)
{
    static const struct {
        const char *path;
        unsigned status;
        const char *name, *info;
    } cases[] = {{"/a.php/x%2Fy", 0, "/a.php", "/x%2Fy"},
                 {"/a.php/%2F/z.php", 0, "/a.php", "/%2F/z.php"},
                 {"/lib.php/b.php/z%2F", 0, "/lib.php/b.php", "/z%2F"},
                 {"/a.php%2Fy", 404, NULL, NULL},
                 {"/lib.php%2Fb.php", 404, NULL, NULL},
                 {"/uploads/a.jpg%2Fx.php", 404, NULL, NULL},
                 {"/%2F/a.php", 404, NULL, NULL}};
    static const mk_str extensions[] = {MK_STR_INIT(".php"), MK_STR_INIT("")};
    mk_str name, info;
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++)
        for (size_t k = 0; k < MK_LEN(extensions); k++) {
            struct mk_request r = {.path = mk_str_from_c(cases[i].path), .encoded_slash = true};
            assert_int_equal(mk_request_find_script(&r, extensions[k], &name, &info), cases[i].status);
            if (cases[i].status)
                continue;
            assert_str(name, cases[i].name);
            assert_str(info, cases[i].info);
        }
}

static void script_errors_map_to_statuses(void **state)
{
    static const struct {
        int error;
        unsigned status;
    } cases[] = {{-EACCES, 403}, {-ELOOP, 403}, {-EXDEV, 403},  {-ENOMEM, 503},
                 {-EMFILE, 503}, {-EIO, 500},   {-ENOENT, 404}, {-ENAMETOOLONG, 404}};
    mk_str name, info;
    (void)state;
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        struct mk_request r = {.path = MK_STR("/a.php"), .fails = cases[i].error};
        assert_int_equal(mk_request_find_script(&r, MK_STR(".php"), &name, &info), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(script_is_first_file_with_extension),
        cmocka_unit_test(script_without_extension_is_any_file),
        cmocka_unit_test(script_other_extension_is_never_run),
        cmocka_unit_test(script_hidden_file_is_forbidden),
        cmocka_unit_test(script_name_ends_before_encoded_slash),
        cmocka_unit_test(script_errors_map_to_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
