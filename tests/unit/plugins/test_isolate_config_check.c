/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a service before its configuration is accepted: its output, its exit status, and services that
 * hang. A function of this test replaces the program that would load the service. */
#include "unit/test.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config_check.h"
#include "environment.h"
#include "group_config.h"
#include "process.h"
#include "routes.h"

static const struct isolate_settings settings;
static struct isolate_group group = {.name = "shop", .settings = &settings};

/* ---- Fake server ---- */

static char errors[32 * 1024];
static bool is_tried;

bool mk_config_was_validated(const struct mk_config *config)
{
    (void)config;
    return is_tried;
}

void mk_config_error(struct mk_config *config, const void *section, const char *key, const char *fmt, ...)
{
    size_t len = strlen(errors);
    va_list args;
    (void)config;
    assert_ptr_equal(section, &settings);
    assert_string_equal(key, "Service");
    va_start(args, fmt);
    len += (size_t)vsnprintf(errors + len, sizeof errors - len, fmt, args);
    va_end(args);
    (void)snprintf(errors + len, sizeof errors - len, "\n");
}

/* ---- Fakes of the rest of the plugin ---- */

static int (*program)(void); /* the check runs this function, which returns the exit code */
static int stored, confined;
static bool is_late; /* the timeout of twenty seconds passes within one clock read */

static int routes_fd, routes_error; /* the report of the routes, or the error of creating it */
static struct isolate_route reported;

int isolate_routes_create_file(void)
{
    return routes_fd = routes_error ? routes_error : memfd_create("routes", MFD_CLOEXEC);
}

static bool report_is_too_long;

bool isolate_routes_read(struct mk_config *config, struct isolate_group *g, int fd)
{
    assert_int_equal(fd, routes_fd);
    if (report_is_too_long)
        mk_config_error(config, g->settings, "Service", "too many routes");
    else
        g->routes = &reported;
    return !report_is_too_long;
}

int isolate_group_config_write(const struct isolate_group *g, const char *root, int fd)
{
    assert_ptr_equal(g, &group);
    assert_string_equal(root, "/");
    assert_true(fd >= 0);
    return stored;
}

char **isolate_environment_build(const struct isolate_group *g, char *const *all, char *const *own)
{
    static char *none[] = {NULL};
    (void)g, (void)all;
    return own && strcmp(own[0], MK_ROUTES_FD_VARIABLE "=4") == 0 && !own[1] ? none : NULL;
}

bool isolate_process_keep_fds(const int *fds, int n)
{
    return n == 2 && fds[0] >= 0 && fds[1] == routes_fd;
}

int isolate_process_drop_privileges(const struct isolate_group *g, uint64_t memory)
{
    (void)g;
    return memory ? -EINVAL : confined;
}

_Noreturn void isolate_process_exec(bool checks, int config, char **environment)
{
    _exit(checks && config == 3 && environment ? program() : 99);
}

int64_t isolate_process_now_ms(void)
{
    static int64_t now;
    return now += is_late ? 19950 : 1;
}

/* ---- Checks ---- */

static void expect_report(int (*what)(void), const char *output)
{
    program = what;
    errors[0] = '\0';
    group.routes = NULL;
    assert_int_equal(isolate_config_check(NULL, &group), *output == '\0');
    assert_string_equal(errors, output);
}

static int is_fine(void)
{
    dprintf(STDOUT_FILENO, "monkey.conf:1:2: warning: odd\n");
    return 0;
}

static void config_check_working_service_passes(void **state)
{
    (void)state;
    expect_report(is_fine, "");
    assert_ptr_equal(group.routes, &reported);
}

static void config_check_fails_if_report_is_too_long(void **state)
{
    (void)state;
    report_is_too_long = true;
    expect_report(is_fine, "too many routes\n");
    assert_null(group.routes);
    report_is_too_long = false;
}

static int is_wrong(void)
{
    dprintf(STDERR_FILENO, "/proc/self/fd/3:4:5: error: cannot open it\n"
                           "    Load monkey-shop.so\n"
                           "         ^\n"
                           "\n"
                           "/proc/self/fd/3:1:1: warning: an error: is none here\n");
    dprintf(STDOUT_FILENO, "/etc/shop.conf:7:1: error: no such key\nplain text");
    return 3;
}

/* The report drops positions in the generated file, which the user has never seen, but keeps positions in the
 * user's own files. */
static void config_check_reports_each_error_of_service(void **state)
{
    (void)state;
    expect_report(is_wrong, "the service `shop` cannot serve: cannot open it\n"
                            "the service `shop` cannot serve: /etc/shop.conf:7:1: error: no such key\n"
                            "the service `shop` cannot serve: plain text\n");
    assert_null(group.routes);
}

static int print_nothing(void)
{
    return 1;
}

static int crashes(void)
{
    (void)signal(SIGKILL, SIG_DFL);
    (void)raise(SIGKILL);
    return 0;
}

static void config_check_silent_exit_is_reported(void **state)
{
    (void)state;
    expect_report(print_nothing, "the service `shop` cannot serve: its process exited at once\n");
    expect_report(crashes, "the service `shop` cannot serve: its process exited at once\n");
}

/* Writes more than the report buffer holds: the check must read everything, so that the service can exit. */
static int print_large_report(void)
{
    char line[1024];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 200; i++)
        if (write(STDOUT_FILENO, line, sizeof line) != (ssize_t)sizeof line)
            return 1;
    return 0;
}

static void config_check_long_output_does_not_block(void **state)
{
    (void)state;
    expect_report(print_large_report, "");
}

/* ---- Hanging services ---- */

static int *pids; /* process IDs of the service and of its child, in shared memory */

static int hangs(void)
{
    pids[0] = (int)getpid();
    int child = (int)fork();
    if (child > 0)
        pids[1] = child;
    (void)alarm(30); /* in case the check does not kill the processes */
    while (pause())
        continue;
    return 0;
}

static int hangs_alone(void)
{
    pids[0] = (int)getpid();
    (void)alarm(30);
    while (pause())
        continue;
    return 0;
}

static bool has_ended(int pid)
{
    char path[40], state = 'Z';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    bool has_read = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
    if (f)
        fclose(f);
    return !has_read || state == 'Z' || state == 'X';
}

static void config_check_hanging_service_is_killed_with_children(void **state)
{
    (void)state;
    pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pids, MAP_FAILED);
    do { /* on a busy machine, the check may kill the service before it has started its child */
        memset(pids, 0, 4096);
        is_late = true;
        expect_report(
            hangs,
            "the service `shop` cannot serve: its check did not finish within 20 seconds: the service hangs "
            "while it is loaded\n");
        is_late = false;
    } while (pids[1] <= 0);
    while (!has_ended(pids[0]) || !has_ended(pids[1]))
        usleep(1000); /* waits until the kernel has killed the process */
    munmap(pids, 4096);
}

/* If the server dies, nothing receives the result: the service must end, too. */
static void config_check_ends_with_server(void **state)
{
    (void)state;
    pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pids, MAP_FAILED);
    pid_t server = fork();
    if (server == 0) {
        program = hangs_alone;
        (void)isolate_config_check(NULL, &group);
        _exit(1);
    }
    while (!*(volatile int *)pids)
        usleep(1000); /* waits until the service runs */
    assert_int_equal(kill(server, SIGKILL), 0);
    assert_int_equal(waitpid(server, NULL, 0), server);
    while (!has_ended(pids[0]))
        usleep(1000); /* waits until the kernel has killed the process */
    munmap(pids, 4096);
}

/* ---- Checks that cannot run ---- */

static void config_check_failed_user_change_is_reported(void **state)
{
    (void)state;
    confined = -EPERM;
    expect_report(is_fine,
                  "the service `shop` cannot serve: cannot switch to its user: Operation not permitted\n");
    confined = 0;
}

static void config_check_failed_config_write_is_reported(void **state)
{
    (void)state;
    stored = -ENOSPC;
    expect_report(is_fine,
                  "the service `shop` cannot serve: cannot start a process: No space left on device\n");
    stored = 0;
}

static void config_check_failed_creation_of_route_file_is_reported(void **state)
{
    (void)state;
    routes_error = -EMFILE;
    expect_report(is_fine, "the service `shop` cannot serve: cannot start a process: Too many open files\n");
    routes_error = 0;
}

/* A trial of the configuration has already run the check. */
static void config_check_is_skipped_in_trial(void **state)
{
    (void)state;
    is_tried = true;
    expect_report(print_nothing, "");
    assert_null(group.routes);
    is_tried = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_check_working_service_passes),
        cmocka_unit_test(config_check_fails_if_report_is_too_long),
        cmocka_unit_test(config_check_reports_each_error_of_service),
        cmocka_unit_test(config_check_silent_exit_is_reported),
        cmocka_unit_test(config_check_long_output_does_not_block),
        cmocka_unit_test(config_check_hanging_service_is_killed_with_children),
        cmocka_unit_test(config_check_ends_with_server),
        cmocka_unit_test(config_check_failed_user_change_is_reported),
        cmocka_unit_test(config_check_failed_config_write_is_reported),
        cmocka_unit_test(config_check_failed_creation_of_route_file_is_reported),
        cmocka_unit_test(config_check_is_skipped_in_trial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
