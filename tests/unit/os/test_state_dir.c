/* SPDX-License-Identifier: Apache-2.0 */
#include "os/state_dir.h"

#include "unit/fixtures.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder top;
static int dir = -1;
static const char *why;

static void setup(void)
{
    char buffer[PATH_MAX];
    folder_setup(&top);
    fd_setup(&dir);
    assert_int_equal(mk_state_dir_open(folder_path(&top, "state", buffer), &dir, &why), 0);
}

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void expect_path(const char *expected)
{
    char buffer[PATH_MAX];
    assert_int_equal(mk_state_dir_path(buffer), 0);
    assert_string_equal(buffer, expected);
}

/* ---- Path ---- */

static void state_dir_path_comes_from_environment(void **state)
{
    (void)state;
    char buffer[PATH_MAX], long_path[PATH_MAX + 2];
    set("MONKEY_STATE", "/named");
    set("STATE_DIRECTORY", "/service:/other");
    set("XDG_STATE_HOME", "/xdg");
    expect_path("/named");
    set("MONKEY_STATE", "");
    expect_path("/service");
    set("STATE_DIRECTORY", NULL);
    expect_path(geteuid() == 0 ? "/var/lib/monkey" : "/xdg/monkey");
    set("MONKEY_STATE", "here");
    assert_int_equal(mk_state_dir_path(buffer), -EINVAL);
    memset(long_path, '/', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    set("MONKEY_STATE", long_path);
    assert_int_equal(mk_state_dir_path(buffer), -ENAMETOOLONG);
    set("MONKEY_STATE", NULL);
    set("XDG_STATE_HOME", NULL);
}

/* ---- Folder ---- */

static void state_dir_folders_are_private(void **state)
{
    (void)state;
    struct stat st;
    char buffer[PATH_MAX];
    int deep;
    assert_int_equal(mk_state_dir_open(folder_path(&top, "a/b//c/", buffer), &deep, &why), 0);
    mk_fd_close(&deep);
    assert_int_equal(fstatat(top.fd, "a", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fstatat(top.fd, "a/b/c", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void state_dir_of_root_may_be_entered(void **state)
{
    (void)state;
    struct stat st;
    char buffer[PATH_MAX];
    int below;
    mode_t mask = umask(077);
    set("MONKEY_STATE", folder_path(&top, "base", buffer));
    assert_int_equal(mk_state_dir_open(folder_path(&top, "base/below", buffer), &below, &why), 0);
    mk_fd_close(&below);
    set("MONKEY_STATE", NULL);
    umask(mask);
    assert_int_equal(fstatat(top.fd, "base", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, geteuid() == 0 ? 0711 : 0700);
    assert_int_equal(fstatat(top.fd, "base/below", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void expect_refused(const char *name, mk_err e, const char *what)
{
    char buffer[PATH_MAX];
    int fd;
    assert_int_equal(mk_state_dir_open(folder_path(&top, name, buffer), &fd, &why), e);
    assert_int_equal(fd, -1);
    assert_contains(mk_str_from_c(why), what);
}

static void state_dir_shared_folders_are_rejected(void **state)
{
    (void)state;
    folder_add(&top, "file", MK_STR(""));
    folder_add_link(&top, "link", "state");
    folder_add_folder(&top, "open");
    assert_int_equal(fchmodat(top.fd, "open", 0777, 0), 0);
    expect_refused("file", -ENOTDIR, "it is not a folder");
    expect_refused("file/below", -ENOTDIR, "Not a directory");
    expect_refused("link", -ENOTDIR, "must not be a symbolic link");
    expect_refused("open", -EPERM, "other users can write to the folder");
    if (geteuid() == 0) {
        folder_add_folder(&top, "foreign");
        assert_int_equal(fchownat(top.fd, "foreign", 1234, 0, 0), 0);
        expect_refused("foreign", -EPERM, "belongs to another user");
    }
}

static void state_dir_lock_is_exclusive(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    int other;
    assert_int_equal(mk_state_dir_open(folder_path(&top, "state", buffer), &other, &why), 0);
    assert_int_equal(mk_state_dir_lock(dir, 0), 0);
    assert_int_equal(mk_state_dir_lock(other, 0), -EBUSY);
    assert_int_equal(mk_state_dir_lock(other, 30), -EBUSY);
    mk_fd_close(&dir);
    assert_int_equal(mk_state_dir_lock(other, 0), 0);
    mk_fd_close(&other);
}

/* ---- Files ---- */

static mk_err read_file(const char *name, bool secret, char *buffer, size_t cap, mk_str *text)
{
    struct mk_buf b = mk_buf_fixed(buffer, cap);
    mk_err e = mk_state_dir_read(dir, name, secret, &b, &why);
    *text = mk_buf_str(&b);
    return e;
}

static void state_dir_file_round_trips(void **state)
{
    (void)state;
    char buffer[64];
    mk_str text;
    struct stat st;
    assert_int_equal(read_file("x", true, buffer, sizeof buffer, &text), -ENOENT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            mk_state_dir_write(dir, "x", 0600, i ? MK_STR("second") : MK_STR("first, and longer")), 0);
        assert_int_equal(read_file("x", true, buffer, sizeof buffer, &text), 0);
        assert_str(text, i ? "second" : "first, and longer");
    }
    assert_int_equal(fstatat(dir, "x", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fstatat(dir, ".x.new", &st, 0), -1);
    assert_int_equal(mk_state_dir_write(dir, "empty", 0644, MK_STR("")), 0);
    assert_int_equal(read_file("empty", false, buffer, sizeof buffer, &text), 0);
    assert_int_equal(text.len, 0);
}

static void state_dir_oversized_file_is_not_read(void **state)
{
    (void)state;
    char buffer[7];
    mk_str text;
    assert_int_equal(mk_state_dir_write(dir, "x", 0600, MK_STR("1234567")), 0);
    assert_int_equal(read_file("x", true, buffer, sizeof buffer, &text), -EFBIG);
}

static void expect_unread(const char *name, bool secret, const char *what)
{
    char buffer[64];
    mk_str text;
    assert_int_equal(read_file(name, secret, buffer, sizeof buffer, &text), -EPERM);
    assert_contains(mk_str_from_c(why), what);
    assert_int_equal(text.len, 0);
}

static void state_dir_files_accessible_to_others_are_not_read(void **state)
{
    (void)state;
    char buffer[64];
    mk_str text;
    assert_int_equal(mk_state_dir_write(dir, "x", 0644, MK_STR("x")), 0);
    expect_unread("x", true, "other users may read it");
    assert_int_equal(read_file("x", false, buffer, sizeof buffer, &text), 0);
    assert_int_equal(fchmodat(dir, "x", 0622, 0), 0);
    expect_unread("x", false, "other users may write to it");
    assert_int_equal(symlinkat("x", dir, "link"), 0);
    expect_unread("link", false, "symbolic link");
    assert_int_equal(mkdirat(dir, "folder", 0700), 0);
    expect_unread("folder", false, "not a regular file");
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    expect_unread("fifo", true, "not a regular file");
}

static void state_dir_links_are_replaced_not_followed(void **state)
{
    (void)state;
    char buffer[64];
    mk_str text;
    folder_add(&top, "mine", MK_STR("mine"));
    assert_int_equal(symlinkat("../mine", dir, "x"), 0);
    assert_int_equal(symlinkat("../mine", dir, ".x.new"), 0);
    assert_int_equal(mk_state_dir_write(dir, "x", 0644, MK_STR("new")), 0);
    assert_int_equal(read_file("x", false, buffer, sizeof buffer, &text), 0);
    assert_str(text, "new");
    assert_int_equal(faccessat(top.fd, "mine", F_OK, 0), 0);
    char path[PATH_MAX];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(mk_file_read_all(folder_path(&top, "mine", path), &b), 0);
    assert_str(mk_buf_str(&b), "mine");
}

static void state_dir_failed_write_leaves_no_file(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(mkdirat(dir, "x", 0700), 0);
    assert_int_equal(mk_state_dir_write(dir, "x", 0600, MK_STR("text")), -EISDIR);
    assert_int_equal(fstatat(dir, ".x.new", &st, AT_SYMLINK_NOFOLLOW), -1);
    char name[NAME_MAX + 1];
    memset(name, 'x', NAME_MAX);
    name[NAME_MAX] = '\0';
    assert_int_equal(mk_state_dir_write(dir, name, 0600, MK_STR("text")), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(state_dir_path_comes_from_environment, setup),
        fixture_test(state_dir_folders_are_private, setup),
        fixture_test(state_dir_of_root_may_be_entered, setup),
        fixture_test(state_dir_shared_folders_are_rejected, setup),
        fixture_test(state_dir_lock_is_exclusive, setup),
        fixture_test(state_dir_file_round_trips, setup),
        fixture_test(state_dir_oversized_file_is_not_read, setup),
        fixture_test(state_dir_files_accessible_to_others_are_not_read, setup),
        fixture_test(state_dir_links_are_replaced_not_followed, setup),
        fixture_test(state_dir_failed_write_leaves_no_file, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
