/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "dev/crash.h"
#include "progress.h"
#include "server.h"
#include "test_type.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TESTS_MAX = 1024 };

static struct {
    const char *name;
    void (*fn)(struct duda_test *t);
} tests[TESTS_MAX];
static size_t n_tests;

void duda_test_add(const char *name, void (*fn)(struct duda_test *t))
{
    if (n_tests == TESTS_MAX)
        return;
    tests[n_tests].name = name;
    tests[n_tests++].fn = fn;
}

size_t tester_tests_count(void)
{
    return n_tests;
}

/* ---- The state of a test ---- */

mk_str tester_keep(struct duda_test *t, mk_str text)
{
    if (!text.p || t->n_kept == TESTER_KEPT_MAX)
        return MK_STR_NULL;
    struct mk_buf *buf = &t->kept[t->n_kept++];
    *buf = mk_buf_growing(TESTER_BODY_MAX);
    mk_buf_add(buf, text);
    mk_buf_add_char(buf, '\0');
    return buf->failed ? MK_STR_NULL : mk_str_of(buf->p, text.len);
}

void tester_fail_request(struct duda_test *t, const char *method, const char *target, const char *problem)
{
    t->failed = true;
    printf("  %s %s: %s\n", method, target, problem);
}

static void free_test(struct duda_test *t)
{
    tester_streams_close(t);
    tester_websockets_close(t);
    tester_server_free();
    tester_backends_stop(t);
    tester_cookies_free(t);
    while (t->n_kept)
        mk_buf_free(&t->kept[--t->n_kept]);
}

/* ---- The child process ---- */

static void print_result(const struct tester_selection *s, size_t i, bool ok)
{
    printf("%s %s.%s\n", ok ? "ok" : "not ok", s->prefix, tests[i].name);
    fflush(stdout);
    fprintf(stderr, DEV_TEST_PROGRESS_END "%s\n", ok ? "ok" : "not ok");
}

/* The state that the child shares with its parent. */
struct ending {
    volatile bool is_regular; /* the test has returned */
    volatile bool is_broken;  /* the service does not start */
};

/* Runs a test, and exits. */
static void run_in_child(const struct tester_selection *s, size_t i, struct ending *ending)
{
    static struct duda_test test;
    char folder[PATH_MAX];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGABRT, SIG_DFL);
    (void)!dev_crash_install_handlers(NULL); /* without handlers, a crash produces no report */
    snprintf(folder, sizeof folder, "%s/%zu", s->folder, i);
    (void)mkdir(folder, 0700);
    tester_server_set_test(folder, &ending->is_broken);
    test.name = tests[i].name;
    tests[i].fn(&test);
    dev_crash_ignore_exit();
    free_test(&test);
    print_result(s, i, !test.failed);
    ending->is_regular = true;
    exit(test.failed ? TESTER_FAILED : TESTER_OK);
}

/* ---- The parent process ---- */

static volatile sig_atomic_t child;

/* `monkey test` aborts a test that hangs: the child prints its stack. */
static void forward_abort(int number)
{
    if (child > 0)
        (void)kill((pid_t)child, number);
}

/* Ends this process in the same way as the child, whose report has been printed already. */
static void end_like_child(int status)
{
    fflush(stdout);
    if (WIFSIGNALED(status)) {
        (void)prctl(PR_SET_DUMPABLE, 0);
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

static int run_one_test(const struct tester_selection *s, size_t i, struct ending *ending)
{
    int status = 0;
    *ending = (struct ending){.is_regular = false};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_in_child(s, i, ending);
    if (pid < 0)
        return tester_print_error(strerror(errno));
    child = (sig_atomic_t)pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    child = 0;
    if (ending->is_broken)
        return TESTER_BROKEN;
    if (!ending->is_regular || !WIFEXITED(status))
        end_like_child(status);
    return WEXITSTATUS(status);
}

static bool is_selected(const struct tester_selection *s, const char *name)
{
    char full[1024];
    snprintf(full, sizeof full, "%s.%s", s->prefix, name);
    if (!*s->pattern)
        return true;
    return strpbrk(s->pattern, "*?[") ? fnmatch(s->pattern, full, 0) == 0 || fnmatch(s->pattern, name, 0) == 0
                                      : strstr(full, s->pattern) != NULL;
}

int tester_tests_run(const struct tester_selection *s)
{
    struct ending *ending =
        mmap(NULL, sizeof *ending, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int code = TESTER_OK;
    if (ending == MAP_FAILED)
        return tester_print_error(strerror(errno));
    (void)signal(SIGABRT, forward_abort);
    for (size_t i = s->first; i < n_tests && code != TESTER_BROKEN; i++) {
        if (!is_selected(s, tests[i].name))
            continue;
        fprintf(stderr, DEV_TEST_PROGRESS_BEGIN "%zu %s\n", i, tests[i].name);
        int one = run_one_test(s, i, ending);
        code = one > code ? one : code;
    }
    (void)munmap(ending, sizeof *ending);
    return code;
}
