/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/folder.h"
#include "unit/test.h"

static char output[8192];

/* Returns the output of `sh -c script`, and stores its wait status in *status. */
static mk_str run(const char *script, struct mk_spawn s, int *status)
{
    char *argv[] = {(char *)(uintptr_t)("/bin/sh"), (char *)(uintptr_t)("-c"), (char *)(uintptr_t)script,
                    NULL};
    char *envp[] = {(char *)(uintptr_t)("PATH=/usr/bin:/bin"), (char *)(uintptr_t)("A=b c"), NULL};
    int ends[2];
    size_t len = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.argv = argv;
    s.envp = envp;
    s.cwd = s.cwd ? s.cwd : "/";
    s.fds[0] = s.fds[2] = -1;
    s.fds[1] = ends[1];
    pid_t pid = mk_spawn(&s);
    assert_true(pid > 0);
    mk_fd_close(&ends[1]);
    for (ssize_t n; (n = read(ends[0], output + len, sizeof output - len)) > 0;)
        len += (size_t)n;
    mk_fd_close(&ends[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return mk_str_of(output, len);
}

static void spawn_passes_environment_and_folder(void **state)
{
    (void)state;
    int status;
    assert_str(run("echo $A; pwd; exit 7", (struct mk_spawn){.cwd = "/tmp"}, &status), "b c\n/tmp\n");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void spawn_passes_only_standard_descriptors(void **state)
{
    (void)state;
    int status, open_to_all = dup(STDERR_FILENO);
    /* `test -e` skips the descriptor through which the shell listed the folder */
    mk_str s =
        run("for i in /proc/$$/fd/*; do test -e $i && echo ${i##*/}; done", (struct mk_spawn){0}, &status);
    assert_str(s, "0\n1\n2\n");
    close(open_to_all);
}

static void spawn_has_own_group_and_default_signals(void **state)
{
    (void)state;
    int status;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    mk_str s = run(
        /* The last 7 digits stand for signals 1 to 28: libc reserves 32 and 33. */
        "sed -nE 's/^(Sig...):.*(.{7})$/\\1 \\2/p' /proc/self/status | grep -E 'Blk|Ign'; "
        "set -- $(cat /proc/$$/stat); test $5 = $$ && echo own",
        (struct mk_spawn){0}, &status);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_str(s, "SigBlk 0000000\nSigIgn 0000000\nown\n");
}

static void spawn_applies_limits(void **state)
{
    (void)state;
    struct mk_spawn s = {.limits = {[MK_SPAWN_CPU_S] = 5,
                                    [MK_SPAWN_MEMORY] = 1 << 30,
                                    [MK_SPAWN_PROCESSES] = 100000,
                                    [MK_SPAWN_FILE_SIZE] = 4096}};
    int status;
    assert_str(run("ulimit -t; ulimit -v; ulimit -f", s, &status), "5\n1048576\n8\n");
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0); /* our own limits are unchanged */
    assert_true(r.rlim_cur == RLIM_INFINITY || r.rlim_cur > 4096);
    (void)run("while :; do :; done", (struct mk_spawn){.limits = {[MK_SPAWN_CPU_S] = 1}}, &status);
    assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
}

static void spawn_limit_is_capped_by_own_limit(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit r = {.rlim_cur = 8192, .rlim_max = 8192};
        setrlimit(RLIMIT_FSIZE, &r);
        struct mk_spawn s = {.limits = {[MK_SPAWN_FILE_SIZE] = 1 << 20}};
        _exit(!mk_str_eq(run("ulimit -f", s, &status), MK_STR("16\n")));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void spawn_failure_reports_error(void **state)
{
    (void)state;
    struct folder f;
    char path[PATH_MAX];
    char *none[] = {NULL};
    folder_init(&f);
    folder_add(&f, "plain", MK_STR("no program"));
    const struct {
        const char *file, *cwd;
        mk_err e;
    } cases[] = {
        {"/bin/true", "/none", -ENOENT},
        {"/bin/none", "/", -ENOENT},
        {folder_path(&f, "plain", path), "/", -EACCES},
    };
    for (size_t i = 0; i < MK_LEN(cases); i++) {
        char *argv[] = {(char *)(uintptr_t)cases[i].file, NULL};
        struct mk_spawn s = {.argv = argv, .envp = none, .cwd = cases[i].cwd, .fds = {-1, -1, -1}};
        assert_int_equal(mk_spawn(&s), cases[i].e);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* the failed call leaves no child */
        assert_int_equal(errno, ECHILD);
    }
    folder_fini(&f);
}

static void spawn_child_dies_with_parent(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = {(char *)(uintptr_t)("/bin/sleep"), (char *)(uintptr_t)("1000"), NULL},
             *envp[] = {NULL};
        struct mk_spawn s = {.argv = argv, .envp = envp, .cwd = "/", .fds = {-1, ends[1], -1}};
        _exit(mk_spawn(&s) < 0);
    }
    mk_fd_close(&ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    mk_fd_close(&ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spawn_passes_environment_and_folder),
        cmocka_unit_test(spawn_passes_only_standard_descriptors),
        cmocka_unit_test(spawn_has_own_group_and_default_signals),
        cmocka_unit_test(spawn_applies_limits),
        cmocka_unit_test(spawn_limit_is_capped_by_own_limit),
        cmocka_unit_test(spawn_failure_reports_error),
        cmocka_unit_test(spawn_child_dies_with_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
