/* SPDX-License-Identifier: Apache-2.0 */
#include "web/static.h"

#include <sys/resource.h>

#include "unit/site.h"
#include "unit/test.h"

static struct site site;

static void setup(void)
{
    site_setup(&site);
    folder_add_folder(&site.folder, "dir");
    folder_add_folder(&site.folder, "bare");
    site_add(&site, "index.html", MK_STR("front page"));
    site_add(&site, "file.txt", MK_STR("file"));
    site_add(&site, "dir/index.htm", MK_STR("index of dir"));
    site_add(&site, "dir/file", MK_STR("file in dir"));
}

static void expect_status(const char *target, unsigned status)
{
    struct mk_exchange *x = site_run_get(&site, target, "");
    if (x->response.status != status)
        fail_msg("%s: %u, not %u", target, x->response.status, status);
    mk_exchange_free(x);
}

static void expect_file(const char *target, const char *content)
{
    struct mk_exchange *x = site_run_get(&site, target, "");
    if (x->response.status != 200)
        fail_msg("%s: %u", target, x->response.status);
    assert_str(site_content(x), content);
    mk_exchange_free(x);
}

static void expect_redirect(const char *target, const char *location)
{
    struct mk_exchange *x = site_run_get(&site, target, "");
    assert_int_equal(x->response.status, 301);
    assert_str(site_field(x, "Location"), location);
    mk_exchange_free(x);
}

static void static_serves_files(void **state)
{
    (void)state;
    expect_file("/file.txt", "file");
    expect_file("/dir/file", "file in dir");
    expect_file("/file.txt?query", "file");
    expect_file("/%66ile.txt", "file");
    expect_file("//dir/./file", "file in dir");
    expect_file("/dir/../file.txt", "file");
}

static void static_folder_serves_index_file(void **state)
{
    (void)state;
    expect_file("/", "front page");
    expect_file("/dir/", "index of dir");
    site_add(&site, "dir/index.html", MK_STR("the first one counts"));
    expect_file("/dir/", "the first one counts");
    expect_status("/bare/", 403);
    folder_add_folder(&site.folder, "bare/index.html"); /* this index is not a file */
    site_add(&site, "bare/index.htm", MK_STR("second choice"));
    expect_file("/bare/", "second choice");
}

static void static_folder_without_slash_redirects(void **state)
{
    (void)state;
    expect_redirect("/dir", "/dir/");
    expect_redirect("/dir?a=b&c", "/dir/?a=b&c");
    expect_redirect("/bare", "/bare/");
    folder_add_folder(&site.folder, "a b");
    expect_redirect("/a%20b", "/a%20b/");
    expect_redirect("//dir", "/dir/"); /* the redirect never leads to another host */
}

static void static_file_with_slash_gets_404(void **state)
{
    (void)state;
    expect_status("/file.txt/", 404);
    expect_status("/file.txt/x", 404);
    expect_status("/dir/file/", 404);
}

static void static_missing_file_gets_404(void **state)
{
    (void)state;
    char target[1200] = "/";
    expect_status("/nothing", 404);
    expect_status("/dir/nothing", 404);
    expect_status("/nothing/", 404);
    expect_status("/FILE.TXT", 404);
    memset(target + 1, 'x', 1000); /* longer than any file name */
    expect_status(target, 404);
    for (size_t i = 2; i < 1000; i += 2) /* a path through many folders */
        target[i] = '/';
    expect_status(target, 404);
}

static void static_encoded_slash_is_not_a_separator(void **state)
{
    (void)state;
    expect_status("/dir%2Ffile", 404);
    expect_status("/dir%2ffile", 404);
    site_add(&site, "dir%2Ffile", MK_STR("a name like this"));
    expect_status("/dir%2Ffile", 404);
    expect_file("/dir%252Ffile", "a name like this");
}

static void static_dot_files_are_hidden(void **state)
{
    (void)state;
    folder_add_folder(&site.folder, ".git");
    folder_add_folder(&site.folder, ".well-known");
    folder_add_folder(&site.folder, ".well-known/.git");
    folder_add_folder(&site.folder, "dir/.well-known");
    site_add(&site, ".htpasswd", MK_STR("secret"));
    site_add(&site, ".git/config", MK_STR("secret"));
    site_add(&site, ".well-known/x", MK_STR("well known"));
    site_add(&site, ".well-known/.git/x", MK_STR("secret"));
    site_add(&site, "dir/.well-known/x", MK_STR("secret"));
    site_add(&site, "dir/.hidden", MK_STR("secret"));
    site_add(&site, "...", MK_STR("dots"));
    static const char *const hidden[] = {
        "/.htpasswd",          "/.git/config",       "/.git/", "/dir/.hidden",  "/%2ehtpasswd",  "/.nothing",
        "/.well-known/.git/x", "/dir/.well-known/x", "/...",   "/.well-knownx", "/.WELL-KNOWN/x"};
    for (size_t i = 0; i < MK_LEN(hidden); i++)
        expect_status(hidden[i], 403);
    expect_file("/.well-known/x", "well known");
    expect_status("/.well-known/nothing", 404);
    expect_redirect("/.well-known", "/.well-known/");
    site.host.dot_files = true;
    expect_file("/.htpasswd", "secret");
    expect_file("/.git/config", "secret");
    expect_file("/...", "dots");
}

static void static_links_are_followed_as_configured(void **state)
{
    (void)state;
    folder_add_link(&site.folder, "link", "file.txt");
    folder_add_link(&site.folder, "out", "/etc/passwd");
    folder_add_link(&site.folder, "link-dir", "dir");
    expect_status("/link", 403);
    expect_status("/out", 403);
    expect_status("/link-dir/file", 403);
    expect_status("/link-dir", 403);
    site.host.root.how.symlink = MK_SYMLINK_ON;
    expect_file("/link", "file");
    expect_status("/out", 200);
    expect_file("/link-dir/", "index of dir");
}

static void static_special_file_gets_403(void **state)
{
    (void)state;
    assert_int_equal(mkfifoat(site.folder.fd, "fifo", 0644), 0);
    expect_status("/fifo", 403);
    expect_status("/fifo/", 403);
    assert_int_equal(mkfifoat(site.folder.fd, "bare/index.html", 0644), 0);
    site_add(&site, "bare/index.htm", MK_STR("second choice"));
    expect_status("/bare/", 403); /* the first existing index counts, even if it cannot be served */
}

static void static_without_descriptors_gets_503(void **state)
{
    (void)state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct mk_exchange *x = site_run_get(&site, "/file.txt", "");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(x->response.status, 503);
    mk_exchange_free(x);
}

static void static_vhost_without_root_gets_404(void **state)
{
    (void)state;
    site.host.root.fd = -1;
    expect_status("/", 404);
    expect_status("/file.txt", 404);
}

/* ---- Conditions and methods ---- */

static void static_matching_etag_gets_304(void **state)
{
    (void)state;
    char fields[256];
    struct mk_exchange *x = site_run_get(&site, "/file.txt", "");
    mk_str etag = site_field(x, "ETag");
    snprintf(fields, sizeof fields, "If-None-Match: %.*s\r\n", MK_STR_ARG(etag));
    struct mk_exchange *y = site_run_get(&site, "/file.txt", fields);
    assert_int_equal(y->response.status, 304);
    assert_true(mk_str_eq(site_field(y, "ETag"), etag));
    assert_true(site_field(y, "Last-Modified").len > 0);
    assert_null(site_field(y, "Content-Type").p);
    mk_exchange_free(y);
    mk_exchange_free(x);
    x = site_run_get(&site, "/file.txt", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    assert_int_equal(x->response.status, 304);
    mk_exchange_free(x);
    x = site_run_get(&site, "/file.txt", "If-Match: \"other\"\r\n");
    assert_int_equal(x->response.status, 412);
    assert_null(site_field(x, "ETag").p);
    mk_exchange_free(x);
    x = site_run_get(&site, "/file.txt", "If-None-Match: \"other\"\r\n");
    assert_int_equal(x->response.status, 200);
    mk_exchange_free(x);
}

/* Sets the type as a hook would do. */
static void expect_type_is_kept(const char *fields, unsigned status)
{
    struct mk_exchange *x = site_get(&site, "/file.txt", fields);
    mk_str name, value;
    size_t n = 0;
    assert_int_equal(mk_response_add_header(&x->response, MK_STR("content-type"), MK_STR("text/x")), 0);
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, status);
    for (size_t i = 0; mk_response_header_at(&x->response, i, &name, &value); i++)
        n += mk_str_eq_nocase(name, MK_STR("Content-Type"));
    assert_int_equal(n, 1);
    assert_str(site_field(x, "Content-Type"), "text/x");
    mk_exchange_free(x);
}

static void static_type_set_by_hook_is_kept(void **state)
{
    (void)state;
    expect_type_is_kept("", 200);
    expect_type_is_kept("Range: bytes=0-1\r\n", 206);
    expect_type_is_kept("If-None-Match: *\r\n", 304);
}

static void static_other_method_gets_405_with_allow(void **state)
{
    (void)state;
    struct mk_exchange *x =
        site_request(&site, "POST /file.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_true(mk_dispatch_run(x));
    assert_int_equal(x->response.status, 405);
    assert_str(site_field(x, "Allow"), "GET, HEAD, OPTIONS");
    mk_exchange_free(x);
}

/* ---- Fallback page of a single-page application ---- */

static void static_navigation_gets_fallback_page(void **state)
{
    (void)state;
    site.host.fallback = MK_STR("index.html");
    expect_file("/some/route", "front page");
    expect_file("/some/route/", "front page");
    expect_file("/bare/", "front page");
    expect_file("/file.txt", "file");
    expect_status("/missing.js", 404);
    expect_status("/.hidden", 403);
    struct mk_exchange *x = site_run_get(&site, "/user/a.b", "Accept: text/html, */*\r\n");
    assert_int_equal(x->response.status, 200);
    assert_str(site_content(x), "front page");
    mk_exchange_free(x);
    x = site_run_get(&site, "/a.js", "Accept: */*\r\n");
    assert_int_equal(x->response.status, 404);
    mk_exchange_free(x);
    site.host.fallback = MK_STR("nothing.html");
    expect_status("/some/route", 404);
}

/* ---- User folders ---- */

static struct mk_user_homes homes;
static struct mk_user_home ana;

static void add_homes(void)
{
    char buffer[PATH_MAX];
    folder_add_folder(&site.folder, "home");
    folder_add_folder(&site.folder, "home/sub");
    site_add(&site, "home/index.html", MK_STR("ana's page"));
    site_add(&site, "home/x", MK_STR("ana's x"));
    site_add(&site, "home/.secret", MK_STR("secret"));
    site_add(&site, "~bob", MK_STR("a file of that name"));
    ana = (struct mk_user_home){.root = {.path = "home"}};
    assert_int_equal(mk_file_open_root(folder_path(&site.folder, "home", buffer), &ana.root.fd), 0);
    mk_map_init(&homes.by_name, &site.arena);
    assert_true(mk_map_put(&homes.by_name, MK_STR("ana"), &ana));
    site.host.homes = &homes;
}

static void static_user_folders_are_served(void **state)
{
    (void)state;
    add_homes();
    expect_file("/~ana/", "ana's page");
    expect_file("/~ana/x", "ana's x");
    expect_file("/%7Eana/x", "ana's x");
    expect_redirect("/~ana", "/~ana/");
    expect_redirect("/~ana/sub?q", "/~ana/sub/?q");
    expect_status("/~ana/nothing", 404);
    expect_status("/~ana/.secret", 403);
    expect_file("/~ana/../file.txt", "file");
    expect_file("/~bob", "a file of that name");
    expect_status("/~/", 404);
    expect_status("/~ANA/", 404);
    mk_fd_close(&ana.root.fd);
}

/* ---- The next handler ---- */

static enum mk_verdict list_folder(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)data;
    assert_int_equal(mk_response_set_body_nocopy(response, MK_STR("a list")), 0);
    return MK_DONE;
}

static void static_next_handler_may_list_folder(void **state)
{
    (void)state;
    static const struct mk_handler lister = {.name = "list", .handle = list_folder};
    static const struct mk_route routes[] = {
        {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL}, .handler = &mk_static},
        {.pattern = {.text = MK_STR_INIT("/bare/*"), .kind = MK_PATTERN_PREFIX}, .handler = &lister},
    };
    site.host.routes = routes;
    site.host.n_routes = 2;
    expect_file("/bare/", "a list");
    expect_file("/bare/nothing", "a list");
    expect_file("/dir/", "index of dir");
}

/* ---- Scripts ---- */

static enum mk_verdict run_script(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_str reply = mk_arena_printf(request->arena, "ran %.*s", MK_STR_ARG(request->target->path));
    assert_int_equal(mk_response_set_body(response, reply), 0);
    return MK_DONE;
}

static const struct mk_handler script = {.name = "script", .handle = run_script};
static const struct mk_route script_routes[] = {
    {.pattern = {.text = MK_STR_INIT("*.php"), .kind = MK_PATTERN_SUFFIX}, .handler = &script},
    {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL}, .handler = &mk_static},
};

static void static_index_script_is_run_not_shown(void **state)
{
    (void)state;
    static const mk_str index[] = {MK_STR_INIT("index.php"), MK_STR_INIT("index.html")};
    site.host.routes = script_routes;
    site.host.n_routes = 2;
    site.host.index = index;
    site_add(&site, "index.php", MK_STR("<?php secret"));
    site_add(&site, "dir/index.php", MK_STR("<?php secret"));
    expect_file("/", "ran /index.php");
    expect_file("/dir/", "ran /dir/index.php");
    expect_file("/dir/x.php", "ran /dir/x.php");
    expect_file("/file.txt", "file");
    expect_redirect("/dir", "/dir/");
    site.host.fallback = MK_STR("index.php");
    expect_file("/some/route", "ran /index.php");
}

static enum mk_verdict pass(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    (void)response;
    (void)data;
    return MK_NEXT;
}

static void static_index_script_without_handler_is_not_shown(void **state)
{
    (void)state;
    static const struct mk_handler passing = {.name = "pass", .handle = pass};
    static const mk_str index[] = {MK_STR_INIT("index.php")};
    const struct mk_route routes[] = {
        {.pattern = {.text = MK_STR("*.php"), .kind = MK_PATTERN_SUFFIX}, .handler = &passing},
        {.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = &mk_static},
    };
    site.host.routes = routes;
    site.host.n_routes = 2;
    site.host.index = index;
    site_add(&site, "index.php", MK_STR("the file itself"));
    /* the script handler declines, so the index file is served, as it is under its own name */
    expect_file("/", "the file itself");
    expect_file("/index.php", "the file itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(static_serves_files, setup),
        fixture_test(static_folder_serves_index_file, setup),
        fixture_test(static_folder_without_slash_redirects, setup),
        fixture_test(static_file_with_slash_gets_404, setup),
        fixture_test(static_missing_file_gets_404, setup),
        fixture_test(static_encoded_slash_is_not_a_separator, setup),
        fixture_test(static_dot_files_are_hidden, setup),
        fixture_test(static_links_are_followed_as_configured, setup),
        fixture_test(static_special_file_gets_403, setup),
        fixture_test(static_without_descriptors_gets_503, setup),
        fixture_test(static_vhost_without_root_gets_404, setup),
        fixture_test(static_matching_etag_gets_304, setup),
        fixture_test(static_type_set_by_hook_is_kept, setup),
        fixture_test(static_other_method_gets_405_with_allow, setup),
        fixture_test(static_navigation_gets_fallback_page, setup),
        fixture_test(static_user_folders_are_served, setup),
        fixture_test(static_next_handler_may_list_folder, setup),
        fixture_test(static_index_script_is_run_not_shown, setup),
        fixture_test(static_index_script_without_handler_is_not_shown, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
