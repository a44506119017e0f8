/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/logfile.h"

#include "unit/logs/log_case.h"

static void teardown(void)
{
    mk_logfile_close(&f);
}

static void open_log(const char *where)
{
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(where), NULL), 0);
}

static void put(const char *line)
{
    assert_int_equal(write(f.fd, line, strlen(line)), strlen(line));
}

static void logfile_can_be_off(void **state)
{
    (void)state;
    static const char *const off[] = {"off", "OFF", ""};
    for (size_t i = 0; i < MK_LEN(off); i++) {
        open_log(off[i]);
        assert_int_equal(f.kind, MK_LOGFILE_OFF);
        assert_int_equal(f.fd, -1);
        assert_int_equal(mk_logfile_reopen(&f), -ENOENT);
        mk_logfile_close(&f);
    }
}

static void logfile_create_does_not_replace_files(void **state)
{
    (void)state;
    char link[PATH_MAX], target[PATH_MAX];
    struct stat st;
    open_log(path);
    assert_int_equal(mk_logfile_create(&f), -EEXIST);
    mk_logfile_close(&f);
    assert_int_equal(symlink(folder_path(&folder, "target", target), folder_path(&folder, "link", link)), 0);
    f = (struct mk_logfile){.where = mk_str_from_c(link), .kind = MK_LOGFILE_FILE, .fd = -1};
    assert_int_equal(mk_logfile_create(&f), -EEXIST);
    assert_int_equal(stat(target, &st), -1);
    assert_int_equal(unlink(link), 0);
    f.fd = mk_logfile_create(&f);
    assert_true(f.fd >= 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    mk_logfile_close(&f);
}

static void logfile_invalid_paths_fail(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(folder_path(&folder, "no/folder", buffer)), NULL),
                     -ENOENT);
    assert_int_equal(f.fd, -1);
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(folder.path), NULL), -EISDIR);
}

/* ---- Rotation ---- */

static void logfile_is_full_at_its_maximum_size(void **state)
{
    (void)state;
    open_log(path);
    assert_false(mk_logfile_is_full(&f));
    f.max_size = 8;
    assert_false(mk_logfile_is_full(&f));
    put("1234567\n");
    assert_true(mk_logfile_is_full(&f));
    f.max_size = 0;
    assert_false(mk_logfile_is_full(&f));
    mk_logfile_close(&f);
    open_log("/dev/null");
    f.max_size = 1;
    assert_false(mk_logfile_is_full(&f));
}

static bool has(const char *name)
{
    char buffer[PATH_MAX];
    return access(folder_path(&folder, name, buffer), F_OK) == 0;
}

/* Replaces the file with a new one, as the master does. */
static void next(void)
{
    assert_int_equal(mk_logfile_rename_rotated(&f), 0);
    assert_false(has("log"));
    int fd = mk_logfile_reopen(&f);
    assert_true(fd >= 0);
    assert_true(dup3(fd, f.fd, O_CLOEXEC) >= 0);
    close(fd);
}

static void logfile_rotation_renames_files(void **state)
{
    (void)state;
    open_log(path);
    f.keep = 2;
    for (const char *const *line = (const char *const[]){"1\n", "2\n", "3\n", NULL}; *line; line++) {
        put(*line);
        next();
    }
    check("log.1", "3\n");
    check("log.2", "2\n");
    assert_false(has("log.3"));
    folder_add(&folder, "log.4", MK_STR("old"));
    f.keep = 4;
    put("4\n");
    next();
    check("log.1", "4\n");
    check("log.3", "2\n");
    check("log.4", "old"); /* a gap before this file kept it from being rotated */
}

static void logfile_rotation_can_keep_none(void **state)
{
    (void)state;
    open_log(path);
    put("1\n");
    next();
    assert_false(has("log.1"));
    check("log", "");
}

static void logfile_rotation_leaves_foreign_files(void **state)
{
    (void)state;
    char buffer[PATH_MAX];
    open_log(path);
    f.keep = 1;
    assert_int_equal(rename(path, folder_path(&folder, "moved", buffer)), 0);
    assert_int_equal(mk_logfile_rename_rotated(&f), -ENOENT);
    folder_add(&folder, "log", MK_STR("new"));
    assert_int_equal(mk_logfile_rename_rotated(&f), -ENOENT);
    check("log", "new");
    assert_false(has("log.1"));
}

static void logfile_rotation_leaves_a_folder_in_the_way(void **state)
{
    (void)state;
    open_log(path);
    f.keep = 1;
    folder_add_folder(&folder, "log.1");
    assert_int_equal(mk_logfile_rename_rotated(&f), -EISDIR);
    assert_true(has("log"));
}

static void logfile_special_names_are_not_files(void **state)
{
    (void)state;
    static const char *const words[] = {"stdout", "stderr", "syslog", "off", "Off", ""};
    for (size_t i = 0; i < MK_LEN(words); i++)
        assert_true(mk_logfile_is_special_name(mk_str_from_c(words[i])));
    assert_false(mk_logfile_is_special_name(MK_STR("/var/log/x")));
    assert_false(mk_logfile_is_special_name(MK_STR("log")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(logfile_can_be_off, setup, teardown),
        fixture_test(logfile_create_does_not_replace_files, setup, teardown),
        fixture_test(logfile_invalid_paths_fail, setup, teardown),
        fixture_test(logfile_is_full_at_its_maximum_size, setup, teardown),
        fixture_test(logfile_rotation_renames_files, setup, teardown),
        fixture_test(logfile_rotation_can_keep_none, setup, teardown),
        fixture_test(logfile_rotation_leaves_foreign_files, setup, teardown),
        fixture_test(logfile_rotation_leaves_a_folder_in_the_way, setup, teardown),
        fixture_test(logfile_special_names_are_not_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
