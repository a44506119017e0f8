/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the real supervisor process of a group whose server behaves as the test requires. */
#include "unit/test.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "group_record.h"
#include "inner_server.h"
#include "process.h"
#include "runtime_dir.h"
#include "supervisor.h"

enum { PATIENCE_MS = 20000, TICK_NS = 2000000 };

/* Behavior of the group's server. */
enum behavior {
    GOOD,      /* serves at once, reloads, exits on request */
    DIES,      /* exits at once */
    IS_SILENT, /* never serves; exits on request */
    IS_DEAF,   /* serves, but ignores requests to exit */
    MUMBLES,   /* sends READY=1 for a reload that it has not begun */
    CANNOT_BE  /* cannot change to its user */
};

struct shared {
    _Atomic int behavior, starts, hups, terms, quits, pid, is_needed, removed, env_ok;
};

static struct shared *shared;

static char log_path[] = "/tmp/monkey-keeper-XXXXXX";
static struct isolate_settings settings;
static struct isolate_record record;
static struct isolate_group group = {
    .settings = &settings, .name = "shop", .record = &record, .log = log_path};
static pid_t keeper;
static int control;

/* ---- Functions called by the supervisor ---- */

int64_t isolate_process_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool isolate_process_keep_fds(const int *fds, int n)
{
    int high[ISOLATE_SUPERVISOR_FDS];
    for (int i = 0; i < n; i++)
        high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, 100);
    for (int i = 0; i < n; i++)
        if (high[i] >= 0 && (dup2(high[i], 3 + i) < 0 || close(high[i]) < 0))
            return false;
    return true;
}

int isolate_process_drop_privileges(const struct isolate_group *g, uint64_t memory)
{
    (void)memory;
    return g == &group && shared->behavior == CANNOT_BE ? -EPERM : 0;
}

const char *isolate_runtime_dir_name(const struct isolate_record *r)
{
    return r->folder;
}

void isolate_runtime_dir_remove(const struct isolate_record *r)
{
    shared->removed += r == &record;
}

bool isolate_record_has_live_workers(int presence_fd)
{
    assert_int_equal(presence_fd, ISOLATE_PRESENCE_FD);
    return shared->is_needed;
}

/* ---- The group ---- */

static void nap(void)
{
    const struct timespec t = {.tv_nsec = TICK_NS};
    (void)nanosleep(&t, NULL);
}

/* Waits until the supervisor has read the message. */
static void notify(char *const *environment, const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    for (; *environment; environment++)
        if (strncmp(*environment, "NOTIFY_SOCKET=@", 15) == 0) {
            size_t len = strlen(*environment + 15);
            memcpy(to.sun_path + 1, *environment + 15, len);
            int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            (void)sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to,
                         (socklen_t)(sizeof(sa_family_t) + 1 + len));
            for (int unread = 1; unread && ioctl(fd, SIOCOUTQ, &unread) == 0;)
                nap();
            close(fd);
        }
}

static bool has_line(char *const *environment, const char *line)
{
    while (*environment && strcmp(*environment, line) != 0)
        environment++;
    return *environment;
}

static void on_order(int number, char *const *environment)
{
    int how = shared->behavior;
    shared->hups += number == SIGHUP;
    shared->terms += number == SIGTERM;
    shared->quits += number == SIGQUIT;
    if (number == SIGHUP && how != MUMBLES)
        notify(environment, "RELOADING=1\n");
    if (number == SIGHUP)
        notify(environment, "READY=1\n");
    else if (how != IS_DEAF)
        _exit(0);
}

_Noreturn void isolate_process_exec(bool checks, int config, char **environment)
{
    char line[64];
    sigset_t orders;
    sigemptyset(&orders);
    sigaddset(&orders, SIGHUP);
    sigaddset(&orders, SIGTERM);
    sigaddset(&orders, SIGQUIT);
    (void)sigprocmask(SIG_BLOCK, &orders, NULL);
    (void)snprintf(line, sizeof line, "LISTEN_PID=%d", (int)getpid());
    shared->env_ok = !checks && config == ISOLATE_CONFIG_FD && has_line(environment, line) &&
                     has_line(environment, "LISTEN_FDS=1") && has_line(environment, ISOLATE_VARIABLE "=4") &&
                     has_line(environment, MK_STAT_FILE_VARIABLE "=6") &&
                     fcntl(ISOLATE_LISTEN_FD, F_GETFD) == 0 &&
                     fcntl(ISOLATE_CONTROL_FD, F_GETFD) == FD_CLOEXEC && getpgrp() == getpid();
    shared->pid = getpid();
    shared->starts++;
    dprintf(STDERR_FILENO, "begins\033\n");
    if (shared->behavior == DIES)
        _exit(3);
    if (shared->behavior != IS_SILENT)
        notify(environment, "READY=1\n");
    for (;;) {
        int number = sigwaitinfo(&orders, NULL);
        if (number > 0)
            on_order(number, environment);
    }
}

/* ---- The test as master process ---- */

#define await(condition)                                                                                     \
    do {                                                                                                     \
        int64_t end_ms_ = isolate_process_now_ms() + PATIENCE_MS;                                            \
        while (!(condition) && isolate_process_now_ms() < end_ms_)                                           \
            nap();                                                                                           \
        assert_true(condition);                                                                              \
    } while (0)

static void begin(enum behavior how)
{
    int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    memset(shared, 0, sizeof *shared);
    shared->behavior = how;
    shared->is_needed = 1;
    assert_int_equal(truncate(log_path, 0), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const int fds[ISOLATE_SUPERVISOR_FDS] = {null, null, null, null, ends[1], null, -1};
    (void)snprintf(record.folder, sizeof record.folder, "monkey-test-%d", (int)getpid());
    record.master = getpid();
    keeper = fork();
    if (keeper == 0) {
        close(ends[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* in case the test fails */
        isolate_supervisor_run(&group, fds);
    }
    close(ends[1]);
    close(null);
    control = ends[0];
}

static void order(char what)
{
    assert_int_equal(send(control, &what, 1, MSG_NOSIGNAL), 1);
}

static void expect_answer(char to, bool serves)
{
    struct isolate_supervisor_reply a;
    struct pollfd p = {.fd = control, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(recv(control, &a, sizeof a, 0), sizeof a);
    assert_int_equal(a.order, to);
    assert_int_equal(a.serves, serves);
}

static bool has_answer(void)
{
    struct pollfd p = {.fd = control, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

static void expect_end(void)
{
    int status = -1;
    pid_t ended = 0;
    await(ended || (ended = waitpid(keeper, &status, WNOHANG)) != 0);
    assert_int_equal(ended, keeper);
    assert_int_equal(status, 0);
    if (control >= 0)
        close(control);
    if (shared->pid)
        assert_int_equal(kill((pid_t)shared->pid, 0), -1); /* the supervisor has killed the whole group */
}

static const char *log_text(void)
{
    static char text[1 << 16];
    int fd = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static bool keeper_has_left_the_terminal(void)
{
    char path[40], leads_to[32];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/2", (int)keeper);
    ssize_t n = readlink(path, leads_to, sizeof leads_to);
    return n == 9 && memcmp(leads_to, "/dev/null", 9) == 0;
}

static void redirect_stderr(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    close(fd);
}

/* ---- Tests ---- */

static void supervisor_start_and_stop_serving_group(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    assert_int_equal(shared->env_ok, 1);
    order(ISOLATE_STOP);
    expect_end();
    assert_int_equal(shared->terms, 1);
    assert_int_equal(shared->starts, 1);
    assert_int_equal(shared->removed, 0);
    assert_non_null(strstr(log_text(), "shop: begins\\x1B\n"));
    assert_null(strstr(log_text(), "exited unexpectedly"));
}

static void supervisor_dying_group_is_reported_once_and_backs_off(void **state)
{
    (void)state;
    int64_t began = isolate_process_now_ms();
    begin(DIES);
    expect_answer(ISOLATE_START, false);
    await(shared->starts >= 5);
    assert_true(isolate_process_now_ms() - began >= 300); /* delays of 0, 0, 100 and 200 ms */
    assert_false(has_answer());
    await(strstr(log_text(), "[error]") != NULL);
    assert_non_null(strstr(log_text(), "shop: the group exited unexpectedly with code 3: restarting it\n"));
    shared->behavior = GOOD;
    int starts = shared->starts;
    await(shared->starts > starts || shared->pid);
    order(ISOLATE_STOP);
    expect_end();
}

static void supervisor_serving_group_that_dies_restarts_at_once(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    int first = shared->pid;
    assert_int_equal(kill((pid_t)first, SIGKILL), 0);
    await(shared->starts == 2 && shared->pid != first);
    await(strstr(log_text(), "shop: the group was killed by signal 9 (Killed): restarting it\n") != NULL);
    assert_false(has_answer());
    order(ISOLATE_RELOAD);
    expect_answer(ISOLATE_RELOAD, true);
    order(ISOLATE_STOP);
    expect_end();
}

/* A daemon detaches from its terminal some time after it has started its groups: the supervisor must detach,
 * too. */
static void supervisor_detaches_from_terminal_with_master(void **state)
{
    int terminal = dup(STDERR_FILENO);
    (void)state;
    redirect_stderr(log_path); /* the log file replaces the terminal */
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    order(ISOLATE_RELOAD); /* the supervisor has completed an iteration once it has replied */
    expect_answer(ISOLATE_RELOAD, true);
    bool has_left_early = keeper_has_left_the_terminal();
    redirect_stderr("/dev/null");
    await(keeper_has_left_the_terminal());
    (void)dup2(terminal, STDERR_FILENO);
    close(terminal);
    assert_false(has_left_early);
    order(ISOLATE_STOP);
    expect_end();
}

static void supervisor_reload_is_answered_on_completion(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    for (int i = 1; i <= 3; i++) {
        order(ISOLATE_RELOAD);
        expect_answer(ISOLATE_RELOAD, true);
        assert_int_equal(shared->hups, i);
    }
    assert_int_equal(shared->starts, 1);
    order(ISOLATE_STOP);
    expect_end();
}

/* READY=1 of an earlier start may still be in flight when the command arrives. */
static void supervisor_earlier_ready_does_not_complete_reload(void **state)
{
    (void)state;
    begin(MUMBLES);
    expect_answer(ISOLATE_START, true);
    order(ISOLATE_RELOAD);
    await(shared->hups == 1);
    shared->behavior = GOOD;
    order(ISOLATE_RELOAD);
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(shared->hups, 2);
    assert_false(has_answer());
    order(ISOLATE_STOP);
    expect_end();
}

static void supervisor_death_during_reload_is_reported(void **state)
{
    (void)state;
    begin(MUMBLES);
    expect_answer(ISOLATE_START, true);
    order(ISOLATE_RELOAD);
    await(shared->hups == 1);
    shared->behavior = GOOD;
    assert_int_equal(kill((pid_t)shared->pid, SIGKILL), 0);
    expect_answer(ISOLATE_RELOAD, false);
    await(shared->starts == 2);
    order(ISOLATE_STOP);
    expect_end();
}

/* A process that does not serve yet may hang: the supervisor restarts it with the new configuration. */
static void supervisor_reload_of_starting_group_restarts_it(void **state)
{
    (void)state;
    begin(IS_SILENT);
    await(shared->starts == 1 && shared->pid);
    int first = shared->pid;
    shared->behavior = GOOD;
    order(ISOLATE_RELOAD);
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(shared->starts, 2);
    assert_int_equal(shared->hups, 0);
    assert_int_not_equal(shared->pid, first);
    assert_null(strstr(log_text(), "killed by signal")); /* the supervisor itself has killed it */
    order(ISOLATE_STOP);
    expect_end();
}

static void supervisor_stop_of_starting_group_kills_it(void **state)
{
    (void)state;
    begin(IS_SILENT);
    await(shared->starts == 1 && shared->pid);
    order(ISOLATE_STOP);
    expect_end();
    assert_int_equal(shared->terms, 0);
    assert_int_equal(shared->quits, 0);
}

static void supervisor_end_waits_until_group_is_unused_and_removes_folder(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    order(ISOLATE_END);
    order(ISOLATE_RELOAD); /* the supervisor still accepts commands */
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(shared->quits, 0);
    shared->is_needed = 0;
    expect_end();
    assert_int_equal(shared->quits, 1);
    assert_int_equal(shared->terms, 0);
    assert_int_equal(shared->removed, 1);
}

/* When the master dies, its folder passes to another supervisor or to the next server. */
static void supervisor_without_master_keeps_folder(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    close(control);
    control = -1;
    await(kill(keeper, 0) == 0);
    assert_int_equal(shared->quits, 0);
    shared->is_needed = 0;
    expect_end();
    assert_int_equal(shared->quits, 1);
    assert_int_equal(shared->removed, 0);
}

static void supervisor_sigterm_lets_group_finish(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    assert_int_equal(kill(keeper, SIGTERM), 0);
    expect_end();
    assert_int_equal(shared->quits, 1);
    assert_int_equal(shared->terms, 0);
    assert_int_equal(shared->starts, 1);
}

static void supervisor_ignores_terminal_signals(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    assert_int_equal(kill(keeper, SIGINT), 0);
    order(ISOLATE_RELOAD);
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(getpgid(keeper), keeper);
    order(ISOLATE_STOP);
    expect_end();
}

/* Every process can write to an abstract socket. */
static void supervisor_ignores_ready_of_other_process(void **state)
{
    char name[128];
    (void)state;
    begin(IS_SILENT);
    await(shared->starts == 1 && shared->pid);
    (void)snprintf(name, sizeof name, "NOTIFY_SOCKET=@%s/%d", record.folder, (int)keeper);
    char *const environment[] = {name, NULL};
    notify(environment, "READY=1\n");
    shared->behavior = GOOD;
    order(ISOLATE_RELOAD); /* the supervisor would send SIGHUP if READY=1 had counted */
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(shared->hups, 0);
    assert_int_equal(shared->starts, 2);
    order(ISOLATE_STOP);
    expect_end();
}

static void supervisor_failed_user_change_is_reported(void **state)
{
    (void)state;
    begin(CANNOT_BE);
    expect_answer(ISOLATE_START, false);
    await(strstr(log_text(), "shop: the group exited unexpectedly with code 127") != NULL);
    assert_non_null(strstr(log_text(), "shop: cannot switch to its user: Operation not permitted\n"));
    assert_int_equal(shared->starts, 0);
    order(ISOLATE_STOP);
    expect_end();
}

/* A group with limits enters its cgroup before it starts, or does not start. */
static void supervisor_failed_cgroup_entry_prevents_start(void **state)
{
    (void)state;
    settings.limits.memory = 16 << 20;
    begin(GOOD);
    expect_answer(ISOLATE_START, false);
    assert_int_equal(shared->starts, 0);
    await(strstr(log_text(), "shop: cannot join its control group: ") != NULL);
    order(ISOLATE_STOP);
    expect_end();
    settings.limits.memory = 0;
}

static void supervisor_unknown_command_is_ignored(void **state)
{
    (void)state;
    begin(GOOD);
    expect_answer(ISOLATE_START, true);
    order('x');
    order(ISOLATE_RELOAD);
    expect_answer(ISOLATE_RELOAD, true);
    assert_int_equal(shared->starts + shared->terms + shared->quits, 1);
    order(ISOLATE_STOP);
    expect_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supervisor_start_and_stop_serving_group),
        cmocka_unit_test(supervisor_dying_group_is_reported_once_and_backs_off),
        cmocka_unit_test(supervisor_serving_group_that_dies_restarts_at_once),
        cmocka_unit_test(supervisor_detaches_from_terminal_with_master),
        cmocka_unit_test(supervisor_reload_is_answered_on_completion),
        cmocka_unit_test(supervisor_earlier_ready_does_not_complete_reload),
        cmocka_unit_test(supervisor_death_during_reload_is_reported),
        cmocka_unit_test(supervisor_reload_of_starting_group_restarts_it),
        cmocka_unit_test(supervisor_stop_of_starting_group_kills_it),
        cmocka_unit_test(supervisor_end_waits_until_group_is_unused_and_removes_folder),
        cmocka_unit_test(supervisor_without_master_keeps_folder),
        cmocka_unit_test(supervisor_sigterm_lets_group_finish),
        cmocka_unit_test(supervisor_ignores_terminal_signals),
        cmocka_unit_test(supervisor_ignores_ready_of_other_process),
        cmocka_unit_test(supervisor_failed_user_change_is_reported),
        cmocka_unit_test(supervisor_failed_cgroup_entry_prevents_start),
        cmocka_unit_test(supervisor_unknown_command_is_ignored),
    };
    close(mkstemp(log_path));
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return failed;
}
