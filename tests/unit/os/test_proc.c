/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder f;
static char pid_path[PATH_MAX];

static int start(void **state)
{
    (void)state;
    folder_init(&f);
    folder_path(&f, "monkey.pid", pid_path);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    folder_fini(&f);
    return 0;
}

/* The exit code of a child that does that; 255 when it dies otherwise. */
static int in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* ---- The file with our number ---- */

static void check_pidfile(const char *expected)
{
    char room[64];
    struct mk_buf out = mk_buf_fixed(room, sizeof room);
    assert_int_equal(mk_file_read_all(pid_path, &out), 0);
    assert_str(mk_buf_str(&out), expected);
}

static void our_number_is_written_and_removed(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    check_pidfile(expected);
    mk_pidfile_drop(pid_path, &fd);
    assert_int_equal(fd, -1);
    assert_int_equal(access(pid_path, F_OK), -1);
    mk_pidfile_drop(pid_path, &fd);
}

static void what_a_dead_process_left_is_taken_over(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    folder_add(&f, "monkey.pid", MK_STR("123456789012345\nand more\n"));
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    check_pidfile(expected);
    mk_pidfile_drop(pid_path, &fd);
}

static int take_it_too(void)
{
    int fd = -1;
    mk_err e = mk_pidfile_take(pid_path, &fd);
    return e == -EBUSY && fd == -1 ? 0 : 1;
}

static void a_living_process_keeps_it(void **state)
{
    (void)state;
    char expected[32];
    int fd = -1;
    snprintf(expected, sizeof expected, "%d\n", (int)getpid());
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    assert_int_equal(in_child(take_it_too), 0);
    check_pidfile(expected);
    mk_pidfile_drop(pid_path, &fd);
    assert_int_equal(in_child(take_it_too), 1); /* now it is free */
}

/* As another process does it: the file stays the same. */
static void write_over(const char *text)
{
    int fd = open(pid_path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(mk_fd_write_all(fd, text, strlen(text)), 0);
    mk_fd_close(&fd);
}

static void the_number_of_another_is_not_removed(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    write_over("1\n");
    mk_pidfile_drop(pid_path, &fd);
    check_pidfile("1\n");
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    write_over("");
    mk_pidfile_drop(pid_path, &fd);
    check_pidfile("");
}

/* Takes the place of the libc's, to remove the file between opening and locking, as its last owner may. */
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

static void the_lock_is_on_the_file_of_that_name(void **state)
{
    (void)state;
    int fd = -1;
    removals = 2;
    assert_int_equal(mk_pidfile_take(pid_path, &fd), 0);
    assert_int_equal(removals, 0);
    assert_int_equal(in_child(take_it_too), 0);
    mk_pidfile_drop(pid_path, &fd);
    removals = 1000;
    assert_int_equal(mk_pidfile_take(pid_path, &fd), -EAGAIN); /* not without end */
    assert_int_equal(fd, -1);
    removals = 0;
}

static void places_where_it_cannot_be(void **state)
{
    (void)state;
    int fd = -1;
    char room[PATH_MAX];
    folder_add_link(&f, "link", "victim");
    assert_int_equal(mk_pidfile_take(folder_path(&f, "link", room), &fd), -ELOOP);
    assert_int_equal(access(folder_path(&f, "victim", room), F_OK), -1);
    assert_int_equal(mk_pidfile_take(folder_path(&f, "no/folder", room), &fd), -ENOENT);
    assert_int_equal(mk_pidfile_take(f.path, &fd), -EISDIR);
}

/* ---- Who we are ---- */

static void users_are_found(void **state)
{
    (void)state;
    struct mk_identity id;
    char longest[200];
    assert_int_equal(mk_identity_find("root", NULL, &id), 0);
    assert_int_equal(id.uid, 0);
    assert_int_equal(id.gid, 0);
    assert_string_equal(id.user, "root");
    assert_int_equal(mk_identity_find("root", "", &id), 0);
    assert_int_equal(id.gid, 0);
    assert_int_equal(mk_identity_find("root", "daemon", &id), 0);
    assert_int_equal(id.uid, 0);
    assert_int_equal(id.gid, 1);
    assert_int_equal(mk_identity_find("no-such-user", NULL, &id), -ENOENT);
    assert_int_equal(mk_identity_find("root", "no-such-group", &id), -ENOENT);
    memset(longest, 'u', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(mk_identity_find(longest, NULL, &id), -ENOENT);
}

static int become_daemon_user(void)
{
    struct mk_identity id;
    gid_t groups[64];
    if (mk_identity_find("daemon", NULL, &id) || mk_identity_become(&id))
        return 1;
    if (getuid() != id.uid || geteuid() != id.uid || getgid() != id.gid || getegid() != id.gid)
        return 2;
    int n = getgroups(MK_LEN(groups), groups);
    for (int i = 0; i < n; i++)
        if (groups[i] == 0)
            return 3; /* still in the group of root */
    if (setuid(0) == 0 || seteuid(0) == 0)
        return 4;
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : 5;
}

static int become_root_again(void)
{
    struct mk_identity root;
    if (mk_identity_find("root", NULL, &root) || become_daemon_user())
        return 1;
    return mk_identity_become(&root) == -EPERM ? 0 : 2;
}

static void there_is_no_way_back(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(become_daemon_user), 0);
    assert_int_equal(in_child(become_root_again), 0);
}

static int stay_on_one_processor(void)
{
    cpu_set_t set, one;
    if (sched_getaffinity(0, sizeof set, &set) || mk_proc_cpus() != (unsigned)CPU_COUNT(&set))
        return 1;
    size_t first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 && mk_proc_cpus() == 1 ? 0 : 2;
}

static void processors_are_those_we_may_use(void **state)
{
    (void)state;
    assert_int_equal(in_child(stay_on_one_processor), 0);
}

static void a_name_is_set(void **state)
{
    (void)state;
    char before[16], name[16];
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    mk_proc_set_name("monkey: a long name");
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_string_equal(name, "monkey: a long ");
    mk_proc_set_name(before);
}

static int notice_a_lost_parent(void)
{
    int signal = 0;
    if (mk_proc_die_with_parent(getppid(), SIGQUIT))
        return 1;
    if (prctl(PR_GET_PDEATHSIG, &signal) || signal != SIGQUIT)
        return 2;
    return mk_proc_die_with_parent(getpid(), SIGQUIT) == -ESRCH ? 0 : 3;
}

static void a_lost_parent_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(in_child(notice_a_lost_parent), 0);
}

/* ---- Into the background ---- */

static int be_daemon(int code)
{
    int ready_fd = -1;
    if (mk_daemon_start(&ready_fd))
        return 99;
    bool left = getsid(0) == getpid() && getpgrp() == getpid();
    if (code >= 0)
        mk_daemon_ready(&ready_fd, left ? code : 98);
    _exit(0);
}

static int be_fine_daemon(void)
{
    return be_daemon(0);
}

static int be_failing_daemon(void)
{
    return be_daemon(7);
}

static int be_dying_daemon(void)
{
    return be_daemon(-1);
}

static void who_started_the_daemon_learns_how_it_went(void **state)
{
    (void)state;
    assert_int_equal(in_child(be_fine_daemon), 0);
    assert_int_equal(in_child(be_failing_daemon), 7);
    assert_int_equal(in_child(be_dying_daemon), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(our_number_is_written_and_removed, start, stop),
        cmocka_unit_test_setup_teardown(what_a_dead_process_left_is_taken_over, start, stop),
        cmocka_unit_test_setup_teardown(a_living_process_keeps_it, start, stop),
        cmocka_unit_test_setup_teardown(the_number_of_another_is_not_removed, start, stop),
        cmocka_unit_test_setup_teardown(the_lock_is_on_the_file_of_that_name, start, stop),
        cmocka_unit_test_setup_teardown(places_where_it_cannot_be, start, stop),
        cmocka_unit_test(users_are_found),
        cmocka_unit_test(there_is_no_way_back),
        cmocka_unit_test(processors_are_those_we_may_use),
        cmocka_unit_test(a_name_is_set),
        cmocka_unit_test(a_lost_parent_is_noticed),
        cmocka_unit_test(who_started_the_daemon_learns_how_it_went),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
