/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a process of a group: its descriptors, its user, and its program, which this test replaces. */
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

enum { NOBODY = 65534, NICE_MAX = 19, FD = 40, FINE = 0, WRONG = 1 };

/* Fake of the server's function. */
void *mk_config_alloc(struct mk_config *config, size_t size)
{
    (void)config, (void)size;
    return NULL;
}

static char folder[] = "/tmp/monkey-process-XXXXXX";
static char program[64];

static int expect_fine(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- Descriptors ---- */

static bool is_same(int fd, const struct stat *reference)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_ino == reference->st_ino && st.st_dev == reference->st_dev;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Keeps descriptors whose sources and targets overlap, in the worst order. */
static int keep_some(void)
{
    struct stat a, b;
    int null = fcntl(open("/dev/null", O_RDONLY), F_DUPFD, 60),
        zero = fcntl(open("/dev/zero", O_RDONLY), F_DUPFD, 60);
    if (fstat(null, &a) || fstat(zero, &b) || dup2(null, 5) < 0 || dup2(zero, 3) < 0 || dup2(zero, FD) < 0 ||
        dup2(null, 200) < 0)
        return WRONG;
    close(4);
    if (!isolate_process_keep_fds((const int[]){5, -1, 3}, 3))
        return WRONG;
    return is_same(3, &a) && !is_open(4) && is_same(5, &b) && is_open(2) && !is_open(6) && !is_open(FD) &&
                   !is_open(100) && !is_open(200) && fcntl(3, F_GETFD) == 0
               ? FINE
               : WRONG;
}

static void process_keeps_listed_descriptors_and_closes_others(void **state)
{
    pid_t pid = fork();
    (void)state;
    if (pid == 0)
        _exit(keep_some());
    assert_int_equal(expect_fine(pid), FINE);
    pid = fork();
    if (pid == 0)
        _exit(isolate_process_keep_fds((const int[]){999}, 1) ? WRONG : FINE); /* not an open descriptor */
    assert_int_equal(expect_fine(pid), FINE);
}

/* ---- User and limits ---- */

static struct isolate_settings settings;

static int confine(const struct isolate_group *group, uint64_t memory)
{
    gid_t groups[8];
    uid_t r, e, s;
    struct rlimit limit, before;
    int priority = getpriority(PRIO_PROCESS, 0);
    if (getrlimit(RLIMIT_DATA, &before) || isolate_process_drop_privileges(group, memory))
        return WRONG;
    if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_max != (memory ? memory : before.rlim_max) ||
        limit.rlim_cur != (memory ? memory : before.rlim_cur))
        return WRONG;
    int reference = priority + (int)settings.nice;
    if (getpriority(PRIO_PROCESS, 0) !=
        (reference < NICE_MAX ? reference : NICE_MAX)) /* the tests may run with a nonzero nice value */
        return WRONG;
    if (!group->has_user)
        return FINE;
    if (getresuid(&r, &e, &s) || r != NOBODY || e != NOBODY || s != NOBODY || getresgid(&r, &e, &s) ||
        r != NOBODY || e != NOBODY || s != NOBODY || setuid(0) == 0)
        return WRONG;
    int n = getgroups(MK_LEN(groups), groups);
    if (!group->user_name && n != 1)
        return WRONG;
    for (int i = 0; i < n; i++)
        if (groups[i] == 0)
            return WRONG;
    return n >= 1 && groups[0] == NOBODY ? FINE : WRONG;
}

static void expect_confined(const struct isolate_group *group, uint64_t memory)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(confine(group, memory));
    assert_int_equal(expect_fine(pid), FINE);
}

static void process_applies_nice_and_memory_limit(void **state)
{
    const struct isolate_group group = {.settings = &settings};
    (void)state;
    settings.nice = 0;
    expect_confined(&group, 0);
    expect_confined(&group, (uint64_t)1 << 45);
    settings.nice = 5;
    expect_confined(&group, 0);
    settings.nice = 0;
}

/* The process keeps none of root's groups, whether or not its user has a name. */
static void process_changes_user_permanently(void **state)
{
    struct isolate_group group = {.settings = &settings, .has_user = true, .uid = NOBODY, .gid = NOBODY};
    (void)state;
    if (geteuid() != 0)
        skip();
    expect_confined(&group, 0);
    group.user_name = "nobody";
    expect_confined(&group, 0);
}

/* ---- The program ---- */

/* Runs in a copy of this test binary: changes the file as requested, then executes the program. */
static int become(const char *how, const char *path)
{
    static char variable[] = "VARIABLE=1";
    char *environment[] = {variable, NULL};
    if (strcmp(how, "stays") != 0 && unlink(path))
        return WRONG;
    if (strcmp(how, "replaced") == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        dprintf(fd, "#!/bin/sh\necho another program\n");
        close(fd);
    }
    isolate_process_exec(strcmp(how, "stays") != 0, 7, environment);
}

static void copy_program(void)
{
    char buffer[1 << 16];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    (void)unlink(program);
    int to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    assert_true(from >= 0 && to >= 0);
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(to, buffer, (size_t)n), n);
    close(from);
    close(to);
}

static void expect_program(const char *how, const char *expected)
{
    char output[256] = "";
    int ends[2];
    ssize_t n, at = 0;
    copy_program();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(program, program, "--become", how, (char *)NULL);
        _exit(WRONG);
    }
    close(ends[1]);
    while ((n = read(ends[0], output + at, sizeof output - 1 - (size_t)at)) > 0)
        at += n;
    close(ends[0]);
    assert_int_equal(expect_fine(pid), FINE);
    assert_string_equal(output, expected);
}

/* A package upgrade replaces or removes the file of the running program. */
static void process_runs_same_program_after_file_change(void **state)
{
    char by_path[160];
    (void)state;
    (void)snprintf(by_path, sizeof by_path, "monkey -c /proc/self/fd/7 VARIABLE=1 %s\n", program);
    expect_program("stays", by_path);
    expect_program("gone", "monkey -c /proc/self/fd/7 -t VARIABLE=1\n");
    expect_program("replaced", "monkey -c /proc/self/fd/7 -t VARIABLE=1\n");
}

/* Prints the program's arguments, environment and the path it was started from. */
static int report(int argc, char **argv)
{
    char path[128];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    for (int i = 0; i < argc; i++)
        printf("%s ", argv[i]);
    printf("VARIABLE=%s", getenv("VARIABLE"));
    if (n > 0 && argc == 3)
        printf(" %.*s", (int)n, path);
    puts("");
    return FINE;
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(program, sizeof program, "%s/program", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(program);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_keeps_listed_descriptors_and_closes_others),
        cmocka_unit_test(process_applies_nice_and_memory_limit),
        cmocka_unit_test(process_changes_user_permanently),
        cmocka_unit_test(process_runs_same_program_after_file_change),
    };
    if (argc > 2 && strcmp(argv[1], "--become") == 0)
        return become(argv[2], argv[0]);
    if (argc > 2 && strcmp(argv[1], "-c") == 0)
        return report(argc, argv);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
