/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <monkey/clock.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HIGH = 100 };

int64_t isolate_process_now_ms(void)
{
    return (int64_t)mk_clock_ms();
}

/* Returns whether the function at `address` is in the main program. */
static int is_address_in_main_program(struct dl_phdr_info *program, size_t size, void *address)
{
    (void)size;
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &program->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && (uintptr_t)address - program->dlpi_addr - h->p_vaddr < h->p_memsz)
            return 1;
    }
    return -1;
}

bool isolate_process_is_monkey(void)
{
    union {
        void *(*function)(struct mk_config *, size_t);
        void *address;
    } of = {.function = mk_config_alloc};
    return dl_iterate_phdr(is_address_in_main_program, of.address) > 0 &&
           !dlsym(RTLD_DEFAULT, "mk_server_new");
}

bool isolate_process_keep_fds(const int *fds, int n)
{
    int high[8];
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0 && (high[i] = fcntl(fds[i], F_DUPFD, HIGH)) < 0)
            return false;
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0 && dup2(high[i], 3 + i) < 0)
            return false;
    if (syscall(SYS_close_range, (unsigned)(3 + n), ~0U, 0U) == 0)
        return true;
    int end = (int)sysconf(_SC_OPEN_MAX); /* for Linux before 5.9, which lacks close_range() */
    for (int fd = 3 + n; fd < end; fd++)
        close(fd);
    return true;
}

static int set_memory_limit(uint64_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    return !bytes || setrlimit(RLIMIT_DATA, &limit) == 0 ? 0 : -errno;
}

static int switch_user(const struct isolate_group *g)
{
    if (!g->has_user)
        return 0;
    int e = g->user_name ? initgroups(g->user_name, g->gid) : setgroups(1, &g->gid);
    if (e < 0 || setresgid(g->gid, g->gid, g->gid) < 0 || setresuid(g->uid, g->uid, g->uid) < 0)
        return -errno;
    return 0;
}

int isolate_process_drop_privileges(const struct isolate_group *group, uint64_t memory)
{
    errno = 0;
    if (group->settings->nice && nice((int)group->settings->nice) == -1 && errno)
        return -errno;
    int e = set_memory_limit(memory);
    return e ? e : switch_user(group);
}

/* Executes the program by its path, which is more informative in process lists, unless the file was
 * replaced. */
static void exec_monkey(char **argv, char **environment)
{
    char path[4096];
    struct stat now, ours;
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[len > 0 ? len : 0] = '\0';
    if (len > 0 && stat(path, &now) == 0 && stat("/proc/self/exe", &ours) == 0 && now.st_ino == ours.st_ino &&
        now.st_dev == ours.st_dev)
        execve(path, argv, environment);
    execve("/proc/self/exe", argv, environment);
}

_Noreturn void isolate_process_exec(bool checks, int config, char **environment)
{
    char path[32], name[] = "monkey", check[] = "-t", option[] = "-c";
    char *argv[] = {name, option, path, checks ? check : NULL, NULL};
    snprintf(path, sizeof path, "/proc/self/fd/%d", config);
    exec_monkey(argv, environment);
    dprintf(STDERR_FILENO, "cannot start the program: %m\n");
    _exit(127);
}
