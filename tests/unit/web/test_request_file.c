/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin handlers resolve paths to files. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit/child.h"
#include "unit/site.h"
#include "unit/test.h"

static struct site site;
static struct mk_exchange *x;

static void setup(void)
{
    site_setup(&site);
    site_add(&site, "file.txt", MK_STR("text"));
    folder_add_folder(&site.folder, "dir");
    site_add(&site, "dir/.hidden", MK_STR("hidden"));
    x = site_run_get(&site, "/", "Accept-Encoding: gzip;q=0.5\r\nAccept: text/*;q=0.25\r\n");
}

static void teardown(void)
{
    mk_exchange_free(x);
}

static bool is_folder(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return S_ISDIR(st.st_mode);
}

static void expect_open(const char *path, bool folder)
{
    int fd = mk_request_open(&x->request, mk_str_from_c(path));
    if (fd < 0)
        fail_msg("%s: %s", path, mk_err_text(fd));
    assert_int_equal(is_folder(fd), folder);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    mk_fd_close(&fd);
}

static void expect_error(const char *path, int e)
{
    int got = mk_request_open(&x->request, mk_str_from_c(path));
    if (got != e)
        fail_msg("%s: %d", path, got);
}

static void request_file_opens_files_and_folders(void **state)
{
    (void)state;
    char text[8];
    expect_open("/", true);
    expect_open("/dir", true);
    expect_open("/dir/", true);
    expect_open("/file.txt", false);
    expect_open("//file.txt", false);
    expect_open("/dir/.hidden", false); /* the handler decides whether hidden files are shown */
    int fd = mk_request_open(&x->request, MK_STR("/file.txt"));
    assert_int_equal(read(fd, text, sizeof text), 4);
    assert_memory_equal(text, "text", 4);
    mk_fd_close(&fd);
    expect_error("/none", -ENOENT);
    expect_error("/file.txt/", -ENOTDIR);
    expect_error("/file.txt/x", -ENOTDIR);
}

static int stat_file(const char *path, struct mk_file_id *id)
{
    return mk_request_stat(&x->request, mk_str_from_c(path), id);
}

static void request_file_stat_describes_files_and_folders(void **state)
{
    (void)state;
    struct mk_file_id id, again;
    assert_int_equal(stat_file("/file.txt", &id), MK_FILE_REGULAR);
    assert_int_equal(id.size, 4);
    assert_int_equal(id.modified_ns, 1700000000 * INT64_C(1000000000));
    assert_true(id.inode && id.changed_ns);
    assert_int_equal(stat_file("//file.txt", &again), MK_FILE_REGULAR);
    assert_memory_equal(&id, &again, sizeof id);
    assert_int_equal(stat_file("/dir", &id), MK_FILE_FOLDER);
    assert_int_equal(id.size, 0);
    assert_int_equal(stat_file("/dir/", &again), MK_FILE_FOLDER);
    assert_int_equal(id.inode, again.inode);
    assert_int_equal(stat_file("/", NULL), MK_FILE_FOLDER);
    assert_int_equal(stat_file("/dir/.hidden", NULL), MK_FILE_REGULAR);
    assert_int_equal(stat_file("/none", &id), -ENOENT);
    assert_int_equal(stat_file("/file.txt/", &id), -ENOTDIR);
    assert_int_equal(stat_file("/file.txt/x", &id), -ENOTDIR);
    assert_int_equal(mkfifoat(site.folder.fd, "fifo", 0600), 0);
    assert_int_equal(stat_file("/fifo", NULL), MK_FILE_OTHER);
}

static void request_file_stat_is_cached_for_a_second(void **state)
{
    (void)state;
    struct mk_file_id id;
    assert_int_equal(stat_file("/file.txt", &id), MK_FILE_REGULAR);
    assert_int_equal(stat_file("/none", &id), -ENOENT);
    assert_int_equal(unlinkat(site.folder.fd, "file.txt", 0), 0);
    site_add(&site, "none", MK_STR("now there is one"));
    site.now_ms += 999;
    assert_int_equal(stat_file("/file.txt", &id), MK_FILE_REGULAR);
    assert_int_equal(stat_file("/none", &id), MK_FILE_REGULAR); /* the absence of a file is not cached */
    assert_int_equal(id.size, 16);
    site.now_ms += 1; /* advances the loop time, however old the request is */
    assert_int_equal(stat_file("/file.txt", &id), -ENOENT);
}

static int stat_without_system_calls(void)
{
    int wrong = 0;
    struct mk_file_id id;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 77;
    /* From here on, every system call except read(), write() and exit() kills the process. */
    for (int i = 0; i < 100; i++) {
        wrong += stat_file("/file.txt", &id) != MK_FILE_REGULAR || id.size != 4;
        wrong += stat_file("/dir/", NULL) != MK_FILE_FOLDER;
        wrong += stat_file("/large", &id) != MK_FILE_REGULAR || id.size != 5000;
    }
    syscall(SYS_exit, wrong);
    return 1;
}

static void request_file_cached_stat_makes_no_system_call(void **state)
{
    (void)state;
    static const char large[5000];
    site_add(&site, "large",
             mk_str_of(large, sizeof large)); /* too large for memory, so the descriptor stays open */
    assert_int_equal(stat_file("/file.txt", NULL), MK_FILE_REGULAR);
    assert_int_equal(stat_file("/dir", NULL), MK_FILE_FOLDER);
    assert_int_equal(stat_file("/large", NULL), MK_FILE_REGULAR);
    int code = run_in_child(stat_without_system_calls);
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
}

static void request_file_path_cannot_leave_root(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "*",
                                      "..",
                                      "/..",
                                      "/../etc",
                                      "/dir/../..",
                                      "/dir/./x",
                                      "/.",
                                      "/dir/..",
                                      "/dir/../file.txt",
                                      "//.."};
    static const enum mk_symlink policies[] = {MK_SYMLINK_OFF, MK_SYMLINK_OWNER, MK_SYMLINK_ON};
    for (size_t p = 0; p < MK_LEN(policies); p++) {
        site.host.root.how.symlink = policies[p];
        for (size_t i = 0; i < MK_LEN(bad); i++) {
            expect_error(bad[i], -EINVAL);
            assert_int_equal(stat_file(bad[i], NULL), -EINVAL);
            assert_null(mk_request_translate_path(&x->request, mk_str_from_c(bad[i])).p);
        }
        expect_open("/dir", true);
        assert_int_equal(mk_request_open(&x->request, MK_STR("/file.txt\0")), -EINVAL);
        assert_int_equal(mk_request_open(&x->request, MK_STR_NULL), -EINVAL);
    }
    char large[PATH_MAX + 10];
    memset(large, 'a', sizeof large);
    large[0] = '/';
    assert_int_equal(mk_request_open(&x->request, mk_str_of(large, sizeof large)), -ENAMETOOLONG);
}

static void request_file_links_are_followed_as_configured(void **state)
{
    (void)state;
    folder_add_link(&site.folder, "link", "file.txt");
    folder_add_link(&site.folder, "out", "/etc/passwd");
    expect_error("/link", -ELOOP);
    assert_int_equal(stat_file("/link", NULL), -ELOOP);
    assert_int_equal(stat_file("/out", NULL), -ELOOP);
    site.host.root.how.no_openat2 = true;
    expect_error("/link", -ELOOP);
    site.host.root.how.symlink = MK_SYMLINK_OWNER;
    expect_open("/link", false);
    if (getuid() != 0)
        expect_error("/out", -ELOOP);
    site.host.root.how.symlink = MK_SYMLINK_ON;
    assert_int_equal(stat_file("/link", NULL), MK_FILE_REGULAR);
    expect_open("/link", false);
    expect_open("/out", false);
}

static void request_file_user_homes_are_resolved(void **state)
{
    (void)state;
    struct folder home;
    struct mk_user_homes homes;
    folder_init(&home);
    folder_add(&home, "mine.txt", MK_STR("mine"));
    struct mk_user_home user = {.root = {.fd = home.fd, .path = home.path}};
    mk_map_init(&homes.by_name, &site.arena);
    assert_true(mk_map_put(&homes.by_name, MK_STR("user"), &user));
    expect_error("/~user/mine.txt", -ENOENT);
    site.host.homes = &homes;
    expect_open("/~user/mine.txt", false);
    expect_open("/~user", true);
    expect_open("/~user/", true);
    expect_error("/~user/file.txt", -ENOENT);
    expect_error("/~nobody/mine.txt", -ENOENT);
    char expected[PATH_MAX];
    assert_str(mk_request_translate_path(&x->request, MK_STR("/~user/mine.txt")),
               folder_path(&home, "mine.txt", expected));
    site.host.homes = NULL;
    folder_fini(&home);
}

static void request_file_path_is_translated(void **state)
{
    (void)state;
    char expected[PATH_MAX];
    mk_str name = mk_request_translate_path(&x->request, MK_STR("/dir//none.txt"));
    assert_str(name, folder_path(&site.folder, "dir//none.txt", expected));
    assert_int_equal(name.p[name.len], '\0');
    assert_str(mk_request_translate_path(&x->request, MK_STR("/")), folder_path(&site.folder, "", expected));
    site.host.root.path = "/";
    assert_str(mk_request_translate_path(&x->request, MK_STR("//etc")), "/etc");
    site.host.root.path = "";
    assert_null(mk_request_translate_path(&x->request, MK_STR("/etc")).p);
}

static void request_file_without_root_or_vhost_is_not_found(void **state)
{
    (void)state;
    int fd = site.host.root.fd;
    site.host.root.fd = -1;
    expect_error("/file.txt", -ENOENT);
    site.host.root.fd = fd;
    x->request.site = NULL;
    expect_error("/file.txt", -ENOENT);
    assert_null(mk_request_translate_path(&x->request, MK_STR("/a")).p);
    assert_false(mk_request_shows_dot_files(&x->request));
    assert_str(mk_request_media_type(&x->request, MK_STR("a.html")), "application/octet-stream");
}

static void request_file_out_of_descriptors_evicts_idle_files(void **state)
{
    (void)state;
    char large[3000] = {0};
    struct mk_open_file *f;
    site_add(&site, "large", mk_str_of(large, sizeof large)); /* cached as a descriptor */
    assert_int_equal(mk_file_cache_acquire(&site.web.files, &site.host.root, MK_STR("large"), 0, &f), 0);
    mk_open_file_release(f);
    uint64_t before, now;
    assert_int_equal(mk_fd_set_limit(0, &before), 0);
    int next = dup(STDERR_FILENO); /* the next descriptor will have this number */
    close(next);
    assert_int_equal(mk_fd_set_limit((uint64_t)next, &now), 0);
    expect_open("/file.txt", false);
    assert_int_equal(mk_fd_set_limit(before, &now), 0);
}

static void request_file_uses_settings_of_vhost(void **state)
{
    (void)state;
    assert_false(mk_request_shows_dot_files(&x->request));
    site.host.dot_files = true;
    assert_true(mk_request_shows_dot_files(&x->request));
    assert_str(mk_request_media_type(&x->request, MK_STR("a.html")), "text/html");
    assert_str(mk_request_media_type(&x->request, MK_STR("a")), "application/octet-stream");
}

static void request_accepts_codings_and_types(void **state)
{
    (void)state;
    assert_int_equal(mk_request_accepts_coding(&x->request, MK_STR("gzip")), 500);
    assert_int_equal(mk_request_accepts_coding(&x->request, MK_STR("br")), 0);
    assert_int_equal(mk_request_accepts_type(&x->request, MK_STR("text/html")), 250);
    assert_int_equal(mk_request_accepts_type(&x->request, MK_STR("image/png")), 0);
    struct mk_exchange *bare = site_get(&site, "/", "");
    assert_int_equal(mk_request_accepts_type(&bare->request, MK_STR("image/png")), 1000);
    mk_exchange_free(bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(request_file_opens_files_and_folders, setup, teardown),
        fixture_test(request_file_stat_describes_files_and_folders, setup, teardown),
        fixture_test(request_file_stat_is_cached_for_a_second, setup, teardown),
        fixture_test(request_file_cached_stat_makes_no_system_call, setup, teardown),
        fixture_test(request_file_path_cannot_leave_root, setup, teardown),
        fixture_test(request_file_links_are_followed_as_configured, setup, teardown),
        fixture_test(request_file_user_homes_are_resolved, setup, teardown),
        fixture_test(request_file_path_is_translated, setup, teardown),
        fixture_test(request_file_without_root_or_vhost_is_not_found, setup, teardown),
        fixture_test(request_file_out_of_descriptors_evicts_idle_files, setup, teardown),
        fixture_test(request_file_uses_settings_of_vhost, setup, teardown),
        fixture_test(request_accepts_codings_and_types, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
