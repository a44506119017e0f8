/* SPDX-License-Identifier: Apache-2.0 */
#include "config_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "group_config.h"
#include "process.h"
#include "routes.h"

enum { OUTPUT_MAX = 16 * 1024, CHECK_MS = 20000, CONFIG_FD = 3, ROUTES_FD = 4 };

extern char **environ;

/* The files that the check inherits: its configuration, and the file for the report of the routes. A negative
 * value is the error of creating the file. */
struct check_files {
    int config, routes;
};

/* The check loads the service, so it gets the same environment as the group. */
static void exec_config_check(const struct isolate_group *group, pid_t parent)
{
    char routes[sizeof MK_ROUTES_FD_VARIABLE + 16];
    (void)snprintf(routes, sizeof routes, MK_ROUTES_FD_VARIABLE "=%d", ROUTES_FD);
    char *const ours[] = {routes, NULL};
    char **environment = isolate_environment_build(group, environ, ours);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* set here, because a change of user resets it */
    if (environment && getppid() == parent)
        isolate_process_exec(true, CONFIG_FD, environment);
}

static _Noreturn void run_check_in_child(const struct isolate_group *group, const struct check_files *files,
                                         int out, pid_t parent)
{
    const int fds[] = {files->config, files->routes};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 || !isolate_process_keep_fds(fds, 2))
        _exit(127);
    int e = isolate_process_drop_privileges(group, 0);
    if (e)
        dprintf(STDERR_FILENO, "cannot switch to its user: %s\n", strerror(-e));
    else
        exec_config_check(group, parent);
    _exit(127);
}

/* Reads the output of the check until EOF. Returns false on timeout. */
static bool read_output(int from, struct mk_buf *output)
{
    char buf[4096];
    ssize_t n = 1;
    int64_t end = isolate_process_now_ms() + CHECK_MS, left;
    while (n && (left = end - isolate_process_now_ms()) > 0) {
        struct pollfd at = {.fd = from, .events = POLLIN};
        if (poll(&at, 1, (int)left) <= 0)
            continue;
        n = read(from, buf, sizeof buf);
        if (n > 0)
            mk_buf_add(output, mk_str_of(buf, (size_t)n));
    }
    return n == 0;
}

/* If `kills` is set, kills the check and its subprocesses. Then waits for the check. *status is from
 * waitpid(2). */
static void reap_check(pid_t pid, bool kills, int *status)
{
    if (kills)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
}

static int run_check_process(const struct isolate_group *group, const struct check_files *files,
                             struct mk_buf *output, int *status)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        run_check_in_child(group, files, ends[1], parent);
    int e = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (!e) {
        (void)setpgid(pid, pid);
        bool is_over = read_output(ends[0], output);
        reap_check(pid, !is_over, status);
        if (!is_over)
            mk_buf_addf(output,
                        "its check did not finish within %d seconds: the service hangs while it is loaded\n",
                        CHECK_MS / 1000);
    }
    close(ends[0]);
    return e;
}

/* Removes a position in the generated file, which would mean nothing to the reader. */
static mk_str strip_file_position(mk_str line)
{
    static const char mark[] = "error: ";
    const char *found = line.p ? memmem(line.p, line.len, mark, sizeof mark - 1) : NULL;
    bool is_ours = mk_str_starts(line, MK_STR("/proc/"));
    return found && is_ours ? mk_str_skip(line, (size_t)(found - line.p) + sizeof mark - 1) : line;
}

/* Reports the errors in the output. Skips source lines and markers, which are indented, and warnings. */
static void report_output(struct mk_config *config, const struct isolate_group *group,
                          const struct mk_buf *output)
{
    mk_str rest = mk_buf_str(output);
    bool has_any = false;
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (!line.len || line.p[0] == ' ' || memmem(line.p, line.len, "warning: ", 9))
            continue;
        line = strip_file_position(line);
        mk_config_error(config, group->settings, "Service", "the service `%s` cannot serve: %.*s",
                        group->name, MK_STR_ARG(line));
        has_any = true;
    }
    if (!has_any)
        mk_config_error(config, group->settings, "Service",
                        "the service `%s` cannot serve: its process exited at once", group->name);
}

static int run_check(const struct isolate_group *group, const struct check_files *files,
                     struct mk_buf *output, int *status)
{
    int e = files->config < 0 ? files->config : files->routes < 0 ? files->routes : 0;
    /* The check does not serve files, so the document root may be "/". */
    if (!e)
        e = isolate_group_config_write(group, "/", files->config);
    return e ? e : run_check_process(group, files, output, status);
}

static void close_check_files(const struct check_files *files)
{
    if (files->config >= 0)
        close(files->config);
    if (files->routes >= 0)
        close(files->routes);
}

bool isolate_config_check(struct mk_config *config, struct isolate_group *group)
{
    if (mk_config_was_validated(config))
        return true;
    struct mk_buf output = mk_buf_growing(OUTPUT_MAX);
    int status = 0, fd = memfd_create("isolate", MFD_CLOEXEC);
    const struct check_files files = {fd < 0 ? -errno : fd, isolate_routes_create_file()};
    int e = run_check(group, &files, &output, &status);
    bool ok = !e && !status;
    if (e)
        mk_buf_addf(&output, "cannot start a process: %s", strerror(-e));
    if (ok)
        ok = isolate_routes_read(config, group, files.routes);
    else
        report_output(config, group, &output);
    close_check_files(&files);
    mk_buf_free(&output);
    return ok;
}
