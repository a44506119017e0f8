/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"
#include "text.h"

enum { SAID_MAX = 16 * 1024, CHECK_S = 60 };

extern char **environ;

static _Noreturn void be_child(const struct isolate_group *group, int config_fd, int out)
{
    const int fds[] = {config_fd};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(CHECK_S);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 || !isolate_process_keep(fds, 1))
        _exit(127);
    int e = isolate_process_confine(group, 0);
    if (e)
        dprintf(STDERR_FILENO, "cannot become its user: %s\n", strerror(-e));
    else
        isolate_process_run(true, 3, environ);
    _exit(127);
}

/* What it says, up to its end; `*status` as waitpid(2) has it. */
static void hear(int from, pid_t pid, struct mk_buf *said, int *status)
{
    char room[4096];
    ssize_t n;
    while ((n = read(from, room, sizeof room)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            mk_buf_add(said, mk_str_of(room, (size_t)n));
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
}

static int run(const struct isolate_group *group, int config_fd, struct mk_buf *said, int *status)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        be_child(group, config_fd, ends[1]);
    int e = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (!e)
        hear(ends[0], pid, said, status);
    close(ends[0]);
    return e;
}

/* Places in what we have written say nothing to those who read it. */
static mk_str cut_place(mk_str line)
{
    static const char mark[] = "error: ";
    const char *found = line.p ? memmem(line.p, line.len, mark, sizeof mark - 1) : NULL;
    bool is_ours = mk_str_starts(line, MK_STR("/proc/"));
    return found && is_ours ? mk_str_skip(line, (size_t)(found - line.p) + sizeof mark - 1) : line;
}

/* Lines with the source, and marks below them, are indented. */
static void report(struct mk_config *config, const struct isolate_group *group, const struct mk_buf *said)
{
    mk_str rest = mk_buf_str(said);
    bool has_any = false;
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        if (!line.len || line.p[0] == ' ' || memmem(line.p, line.len, "warning: ", 9))
            continue;
        line = cut_place(line);
        mk_config_error(config, group->settings, "Service", "the service `%s` cannot serve: %.*s",
                        group->name, MK_STR_ARG(line));
        has_any = true;
    }
    if (!has_any)
        mk_config_error(config, group->settings, "Service", "the service `%s` cannot serve: it ended at once",
                        group->name);
}

bool isolate_check(struct mk_config *config, const struct isolate_group *group)
{
    struct mk_buf said = mk_buf_growing(SAID_MAX);
    char root[] = "/tmp/monkey-check-XXXXXX";
    bool has_root = mkdtemp(root) && chmod(root, 0755) == 0;
    int status = 0, fd = has_root ? memfd_create("isolate", MFD_CLOEXEC) : -1;
    int e = fd < 0 ? -errno : isolate_text_store(group, root, fd);
    if (!e)
        e = run(group, fd, &said, &status);
    if (e)
        mk_buf_addf(&said, "cannot start a process: %s", strerror(-e));
    if (e || status)
        report(config, group, &said);
    if (fd >= 0)
        close(fd);
    if (has_root)
        (void)rmdir(root);
    mk_buf_free(&said);
    return !e && !status;
}
