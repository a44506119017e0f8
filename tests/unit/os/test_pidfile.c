/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pidfile.h"

#include <sys/syscall.h>

#include "unit/child.h"
#include "unit/folder.h"

static struct folder f;
static char pid_path[PATH_MAX];

static void setup(void)
{
    folder_setup(&f);
    folder_path(&f, "monkey.pid", pid_path);
}

static void check_pidfile(const char *expected)
{
    char buffer[64];
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(mk_file_read_all(pid_path, &out), 0);
    assert_str(mk_buf_str(&out), expected);
}

static void pidfile_is_written_and_removed(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    check_pidfile(expected);
    mk_pidfile_release(pid_path, &fd);
    assert_int_equal(fd, -1);
    assert_int_equal(access(pid_path, F_OK), -1);
    mk_pidfile_release(pid_path, &fd);
}

static void pidfile_of_dead_process_is_taken_over(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    folder_add(&f, "monkey.pid", MK_STR("123456789012345\nand more\n"));
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    check_pidfile(expected);
    mk_pidfile_release(pid_path, &fd);
}

static int acquire_in_child(void)
{
    int fd = -1;
    mk_err e = mk_pidfile_acquire(pid_path, &fd);
    return e == -EBUSY && fd == -1 ? 0 : 1;
}

static void pidfile_of_living_process_is_locked(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    assert_int_equal(run_in_child(acquire_in_child), 0);
    check_pidfile(expected);
    mk_pidfile_release(pid_path, &fd);
    assert_int_equal(run_in_child(acquire_in_child), 1); /* another process can now acquire the file */
}

/* Overwrites the file as another process does; the inode stays the same. */
static void write_over(const char *text)
{
    int fd = open(pid_path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mk_fd_write_all(fd, text, strlen(text)), 0);
    mk_fd_close(&fd);
}

static void pidfile_of_other_process_is_not_removed(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    write_over("1\n");
    mk_pidfile_release(pid_path, &fd);
    check_pidfile("1\n");
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    write_over("");
    mk_pidfile_release(pid_path, &fd);
    check_pidfile("");
}

/* Replaces libc's fcntl() to remove the file between opening and locking, as its previous owner may do. */
static int removals;

int fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *more = va_arg(args, void *);
    va_end(args);
    if (what == F_SETLK && removals > 0) {
        removals--;
        unlink(pid_path);
    }
    return (int)syscall(SYS_fcntl, fd, what, more);
}

static void pidfile_lock_survives_concurrent_removal(void **state)
{
    (void)state;
    int fd = -1;
    removals = 2;
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), 0);
    assert_int_equal(removals, 0);
    assert_int_equal(run_in_child(acquire_in_child), 0);
    mk_pidfile_release(pid_path, &fd);
    removals = 1000;
    assert_int_equal(mk_pidfile_acquire(pid_path, &fd), -EAGAIN); /* the number of retries is limited */
    assert_int_equal(fd, -1);
    removals = 0;
}

static void pidfile_invalid_paths_are_rejected(void **state)
{
    (void)state;
    int fd = -1;
    char buffer[PATH_MAX];
    folder_add_link(&f, "link", "victim");
    assert_int_equal(mk_pidfile_acquire(folder_path(&f, "link", buffer), &fd), -ELOOP);
    assert_int_equal(access(folder_path(&f, "victim", buffer), F_OK), -1);
    assert_int_equal(mk_pidfile_acquire(folder_path(&f, "no/folder", buffer), &fd), -ENOENT);
    assert_int_equal(mk_pidfile_acquire(f.path, &fd), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(pidfile_is_written_and_removed, setup),
        fixture_test(pidfile_of_dead_process_is_taken_over, setup),
        fixture_test(pidfile_of_living_process_is_locked, setup),
        fixture_test(pidfile_of_other_process_is_not_removed, setup),
        fixture_test(pidfile_lock_survives_concurrent_removal, setup),
        fixture_test(pidfile_invalid_paths_are_rejected, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
