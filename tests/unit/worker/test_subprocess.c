/* SPDX-License-Identifier: Apache-2.0 */
/* A worker, its spawner, and the programs that they start. */
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "unit/folder.h"
#include "unit/test.h"
#include "worker/subprocess.h"
#include "worker/worker.h"

static struct mk_worker w;
static struct mk_log quiet;
static int ends[2];
static unsigned fds_before;
static int lost, ended, status;

static void forget(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    (void)log, (void)level, (void)text;
}

static void on_lost(struct mk_subprocesses *c)
{
    (void)c;
    lost++;
}

static void on_end(void *ctx, int how)
{
    assert_ptr_equal(ctx, &ended);
    ended++;
    status = how;
}

/* Allows all programs but one. */
static bool allows(const void *ctx, char *const *argv, char *const *envp)
{
    assert_ptr_equal(ctx, &quiet);
    assert_non_null(envp);
    return strcmp(argv[0], "/bin/echo") != 0;
}

static void begin(bool spawner)
{
    const struct mk_spawner_policy policy = {.allows = allows, .ctx = &quiet, .is_confined = true};
    struct mk_spawner s;
    lost = ended = status = 0;
    quiet = (struct mk_log){.level = MK_LOG_ERROR, .write = forget};
    fds_before = mk_fd_count_open();
    assert_int_equal(mk_loop_init(&w.loop), 0);
    if (spawner)
        assert_int_equal(mk_spawner_start(&s, &policy), 0);
    assert_int_equal(mk_subprocesses_init(&w.children, &w.loop, &quiet, spawner ? &s : NULL), 0);
    w.children.on_lost = on_lost;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
}

static void setup(void)
{
    begin(true);
}

static void setup_without(void)
{
    begin(false);
}

static void teardown(void)
{
    pid_t spawner = w.children.spawner.pid;
    mk_subprocesses_fini(&w.children);
    mk_loop_fini(&w.loop);
    mk_fd_close(&ends[0]);
    mk_fd_close(&ends[1]);
    if (spawner > 0)
        assert_int_equal(waitpid(spawner, NULL, 0), spawner);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(mk_fd_count_open(), fds_before);
}

static void wait_for(const int *what, int value)
{
    for (uint64_t end = mk_clock_ms() + 20000; *what != value && mk_clock_ms() < end;)
        assert_int_equal(mk_loop_run_once(&w.loop, 100), 0);
    assert_int_equal(*what, value);
}

static struct mk_subprocess *run(const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL}, *envp[] = {"PATH=/usr/bin:/bin", "A=b", NULL};
    const struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = ends[1], .err = -1};
    return mk_subprocess_start(&w, &o, on_end, &ended);
}

/* Reads all output until no process can write any longer. */
static mk_str output(void)
{
    static char buffer[64];
    size_t len = 0;
    mk_fd_close(&ends[1]);
    for (uint64_t end = mk_clock_ms() + 20000; mk_clock_ms() < end;) {
        ssize_t n = read(ends[0], buffer + len, sizeof buffer - len);
        if (n == 0)
            return mk_str_of(buffer, len);
        len += n > 0 ? (size_t)n : 0;
        assert_int_equal(mk_loop_run_once(&w.loop, 10), 0);
    }
    fail_msg("some process still holds the pipe");
    return MK_STR("");
}

static void subprocess_runs_and_exits(void **state)
{
    (void)state;
    assert_non_null(run("echo $A; read line || echo none; exit 3"));
    wait_for(&ended, 1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_str(output(), "b\nnone\n");
    assert_int_equal(lost, 0);
}

static void subprocess_streams_are_blocking(void **state)
{
    (void)state;
    assert_non_null(run("grep -q '^flags:.*4[0-7][0-7][0-7]$' /proc/self/fdinfo/1 || echo waits"));
    wait_for(&ended, 1);
    assert_str(output(), "waits\n");
}

/* The mode belongs to the open file description, which other processes may share. */
static void subprocess_streams_stay_non_blocking_on_request(void **state)
{
    (void)state;
    const char *argv[] = {"/bin/sh", "-c", "exit 0", NULL}, *envp[] = {NULL};
    const struct mk_subprocess_options o = {
        .argv = argv, .envp = envp, .in = ends[0], .out = ends[1], .err = -1, .keeps_nonblocking = true};
    assert_non_null(mk_subprocess_start(&w, &o, on_end, &ended));
    wait_for(&ended, 1);
    assert_int_equal(status, 0);
    assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
}

static void subprocess_failed_start_is_reported_later(void **state)
{
    (void)state;
    const char *argv[] = {"/bin/none", NULL}, *envp[] = {NULL};
    struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = -1, .err = -1};
    assert_non_null(mk_subprocess_start(&w, &o, on_end, &ended));
    assert_int_equal(ended, 0);
    wait_for(&ended, 1);
    assert_int_equal(status, -ENOENT);
    argv[0] = "/bin/true";
    o.cwd = "/none";
    assert_non_null(mk_subprocess_start(&w, &o, on_end, &ended));
    wait_for(&ended, 2);
    assert_int_equal(status, -ENOENT);
}

static void subprocess_undeclared_program_is_refused(void **state)
{
    (void)state;
    const char *argv[] = {"/bin/echo", "x", NULL}, *envp[] = {NULL};
    struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = ends[1], .err = -1};
    assert_non_null(mk_subprocess_start(&w, &o, on_end, &ended));
    wait_for(&ended, 1);
    assert_int_equal(status, -EPERM);
    assert_str(output(), "");
}

static void subprocess_invalid_options_are_reported_at_once(void **state)
{
    (void)state;
    static char big[120 * 1024];
    const char *argv[] = {"sh", NULL}, *envp[] = {"A=b", NULL};
    struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = -1, .err = -1};
    assert_null(mk_subprocess_start(&w, &o, on_end, &ended));
    memset(big, 'x', sizeof big - 1);
    argv[0] = "/bin/true";
    envp[0] = big;
    assert_null(mk_subprocess_start(&w, &o, on_end, &ended));
    big[sizeof big - 1 - sizeof "/bin/true"] = '\0';
    assert_non_null(mk_subprocess_start(&w, &o, on_end, &ended));
    wait_for(&ended, 1);
    assert_int_equal(status, 0);
}

static void subprocess_signal_reaches_process_group(void **state)
{
    (void)state;
    struct mk_subprocess *c = run("sleep 1000 & sleep 1000 & wait");
    assert_non_null(c);
    mk_subprocess_signal(c, SIGTERM);
    wait_for(&ended, 1);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_str(output(), "");
}

static void subprocess_killed_child_is_not_reported(void **state)
{
    (void)state;
    struct mk_subprocess *c = run("trap '' TERM; sleep 1000 & sleep 1000");
    assert_non_null(c);
    mk_subprocess_kill(c);
    mk_subprocess_kill(NULL);
    assert_str(output(), "");
    const int none = 0;
    for (uint64_t end = mk_clock_ms() + 20000; !mk_list_empty(&w.children.list) && mk_clock_ms() < end;)
        assert_int_equal(mk_loop_run_once(&w.loop, 100), 0);
    assert_true(mk_list_empty(&w.children.list));
    assert_int_equal(ended, none);
}

static void subprocess_many_are_kept_separate(void **state)
{
    (void)state;
    enum { MANY = 50 };
    for (int i = 0; i < MANY; i++)
        assert_non_null(run(i % 2 ? "exit 5" : "exit 6"));
    wait_for(&ended, MANY);
}

/* Overfills the socket while the other side does not read. */
static void subprocess_signal_waits_for_buffer_space(void **state)
{
    (void)state;
    struct mk_subprocess *c = run("trap 'echo x; exit 9' USR1; while :; do sleep 0.01; done"), *other;
    assert_non_null(c);
    kill(w.children.spawner.pid, SIGSTOP);
    while ((other = run("sleep 1000")))
        mk_subprocess_kill(other);
    mk_subprocess_signal(c, SIGKILL);
    kill(w.children.spawner.pid, SIGCONT);
    wait_for(&ended, 1);
    assert_true(WIFSIGNALED(status));
    for (uint64_t end = mk_clock_ms() + 20000; !mk_list_empty(&w.children.list) && mk_clock_ms() < end;)
        assert_int_equal(mk_loop_run_once(&w.loop, 100), 0);
    assert_true(mk_list_empty(&w.children.list));
}

static void subprocess_all_die_with_worker(void **state)
{
    (void)state;
    assert_non_null(run("trap '' TERM HUP; sleep 1000 & sleep 1000"));
    mk_subprocess_signal(run("exit 0"), SIGCONT); /* both programs have started once the next line runs */
    wait_for(&ended, 1);
    mk_fd_close(&ends[1]);
    mk_subprocesses_fini(&w.children);
    assert_int_equal(waitpid(w.children.spawner.pid, NULL, 0), w.children.spawner.pid);
    w.children.spawner.pid = 0;
    assert_str(output(), "");
    assert_int_equal(ended, 1);
}

static void subprocess_spawner_death_is_noticed(void **state)
{
    (void)state;
    struct mk_subprocess *c = run("exec sleep 1000");
    assert_non_null(c);
    assert_non_null(run("exec sleep 1000"));
    assert_non_null(run("exit 0"));
    wait_for(&ended, 1);
    assert_int_equal(kill(w.children.spawner.pid, SIGKILL), 0);
    wait_for(&lost, 1);
    assert_int_equal(ended, 3);
    assert_int_equal(status, -EPIPE);
    assert_str(output(), "");
    assert_null(run("exit 0"));
    for (uint64_t end = mk_clock_ms() + 20000; w.children.spawner.pid && mk_clock_ms() < end;)
        mk_subprocesses_reap_spawner(&w.children);
    assert_int_equal(w.children.spawner.pid, 0);
}

static void subprocess_without_spawner_fails(void **state)
{
    (void)state;
    assert_null(run("exit 0"));
    mk_subprocesses_reap_spawner(&w.children);
}

static void subprocess_spawner_ignores_session_signals(void **state)
{
    (void)state;
    static const int meant_for_others[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    /* The spawner has started once this program has run; a real worker blocks the signals until then. */
    assert_non_null(run("exit 0"));
    wait_for(&ended, 1);
    for (size_t i = 0; i < MK_LEN(meant_for_others); i++)
        assert_int_equal(kill(w.children.spawner.pid, meant_for_others[i]), 0);
    assert_non_null(run("exit 0"));
    wait_for(&ended, 2);
    assert_int_equal(lost, 0);
}

/* The spawner keeps none of our descriptors: it has five of its own. */
static void subprocess_spawner_keeps_five_descriptors(void **state)
{
    (void)state;
    char path[64], target[PATH_MAX];
    assert_non_null(run("exit 0"));
    wait_for(&ended, 1);
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)w.children.spawner.pid, i);
        ssize_t n = readlink(path, target, sizeof target - 1);
        assert_int_equal(n >= 0, i < 5);
        if (i < 3)
            assert_str(mk_str_of(target, (size_t)n), "/dev/null");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(subprocess_runs_and_exits, setup, teardown),
        fixture_test(subprocess_streams_are_blocking, setup, teardown),
        fixture_test(subprocess_streams_stay_non_blocking_on_request, setup, teardown),
        fixture_test(subprocess_failed_start_is_reported_later, setup, teardown),
        fixture_test(subprocess_undeclared_program_is_refused, setup, teardown),
        fixture_test(subprocess_invalid_options_are_reported_at_once, setup, teardown),
        fixture_test(subprocess_signal_reaches_process_group, setup, teardown),
        fixture_test(subprocess_killed_child_is_not_reported, setup, teardown),
        fixture_test(subprocess_many_are_kept_separate, setup, teardown),
        fixture_test(subprocess_signal_waits_for_buffer_space, setup, teardown),
        fixture_test(subprocess_all_die_with_worker, setup, teardown),
        fixture_test(subprocess_spawner_death_is_noticed, setup, teardown),
        fixture_test(subprocess_without_spawner_fails, setup_without, teardown),
        fixture_test(subprocess_spawner_ignores_session_signals, setup, teardown),
        fixture_test(subprocess_spawner_keeps_five_descriptors, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
