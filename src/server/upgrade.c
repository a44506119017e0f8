/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upgrade.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "os/fd.h"
#include "setup/server_secret.h"

#define PREDECESSOR "MONKEY_PREDECESSOR"
#define SECRET      "MONKEY_SECRET"

void mk_upgrade_init(struct mk_upgrade *u, struct mk_shared_state *shared)
{
    uint64_t pid;
    *u = (struct mk_upgrade){0};
    if (mk_num_parse(mk_str_from_c(getenv(PREDECESSOR)), &pid) && (pid_t)pid == getppid()) {
        u->predecessor = (pid_t)pid;
        mk_server_secret_import(shared, mk_str_from_c(getenv(SECRET)));
    }
    unsetenv(PREDECESSOR);
    unsetenv(SECRET);
    ssize_t n = readlink("/proc/self/exe", u->program, sizeof u->program - 1);
    u->program[n > 0 ? n : 0] = '\0';
}

void mk_upgrade_end_predecessor(struct mk_upgrade *u)
{
    if (u->predecessor > 1 &&
        u->predecessor == getppid()) /* if it is not our parent, the predecessor is gone, and another process
                                      * may have its pid */
        kill(u->predecessor, SIGQUIT);
    u->predecessor = 0;
}

static _Noreturn void exec_successor(const char *program, struct mk_shared_state *shared, char *sockets,
                                     pid_t parent, char *const *argv)
{
    char pid[32], secret[MK_SERVER_SECRET_TEXT];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    pid[mk_num_write(pid, (uint64_t)parent)] = '\0';
    setenv(PREDECESSOR, pid, 1);
    mk_server_secret_export(shared, secret);
    setenv(SECRET, secret, 1);
    putenv(sockets);
    mk_fd_restore_limit(); /* the successor raises the limit itself */
    execv(program, argv);
    _exit(127);
}

mk_err mk_upgrade_start(struct mk_upgrade *u, struct mk_shared_state *shared, struct mk_listeners *l,
                        char *const *argv)
{
    struct mk_buf sockets = mk_buf_growing(64 * 1024);
    pid_t us = getpid();
    if (u->child || !u->program[0])
        return u->child ? -EALREADY : -ENOENT;
    mk_listeners_export(l, &sockets, true);
    mk_buf_add_char(&sockets, '\0');
    pid_t pid = sockets.failed ? -1 : fork();
    if (pid == 0)
        exec_successor(u->program, shared, sockets.p, us, argv);
    mk_err e = sockets.failed ? -ENOMEM : pid < 0 ? mk_err_last() : 0;
    mk_buf_clear(&sockets);
    mk_listeners_export(l, &sockets, false);
    mk_buf_free(&sockets);
    u->child = pid > 0 ? pid : 0;
    return e;
}

void mk_upgrade_on_quit(struct mk_upgrade *u, pid_t sender)
{
    if (u->child && sender == u->child)
        u->is_complete = true;
}

bool mk_upgrade_successor_died(struct mk_upgrade *u)
{
    int status;
    if (!u->child || u->is_complete ||
        waitpid(u->child, &status, WNOHANG) == 0) /* an error means that the child was already reaped with the
                                                     workers */
        return false;
    u->child = 0;
    return true;
}
