/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

unsigned mk_proc_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

void mk_proc_protect_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

void mk_proc_set_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

mk_err mk_proc_die_with_parent(pid_t parent, int signal)
{
    if (prctl(PR_SET_PDEATHSIG, signal) < 0)
        return mk_err_last();
    return getppid() == parent ? 0 : -ESRCH;
}

bool mk_proc_is_stopped(pid_t pid)
{
    char path[40], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    mk_fd_close(&fd);
    /* the text is "123 (a name with ) in it) T ..." */
    size_t end = n > 0 ? mk_str_find_last(mk_str_of(text, (size_t)n), ')') : MK_STR_NONE;
    return end != MK_STR_NONE && end + 2 < (size_t)n && (text[end + 2] == 'T' || text[end + 2] == 't');
}

static const char self[] = "/proc/self/exe";

bool mk_proc_executable_is_replaced(void)
{
    static const char deleted[] = " (deleted)";
    char path[PATH_MAX];
    struct stat ours, now;
    ssize_t len = readlink(self, path, sizeof path - 1);
    if (len <= 0 || stat(self, &ours) < 0)
        return false;
    path[len] = '\0';
    size_t end = sizeof deleted - 1;
    if ((size_t)len > end && strcmp(path + (size_t)len - end, deleted) == 0)
        path[(size_t)len - end] = '\0';
    return stat(path, &now) == 0 && (now.st_dev != ours.st_dev || now.st_ino != ours.st_ino);
}
