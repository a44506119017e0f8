/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 100000, TEXT_MAX = 4096, TRIES = 20, TRY_NS = 50000000, ROUNDS = 8 };

#define HOW_TO                                                                                               \
    "start the server with systemd and `Delegate=cpu memory`, or as root, or omit CPUQuota and "             \
    "MemoryMax"

static bool set_cgroup_error(char *error, const char *what, const char *path)
{
    (void)snprintf(error, ISOLATE_CGROUP_ERROR_MAX, "%s %s%s%s: " HOW_TO, what, path, errno ? ": " : "",
                   errno ? strerror(errno) : "");
    return false;
}

static const char part[] = "/server";

/* ---- Files ---- */

static bool read_text(const char *path, char text[TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return done;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += len)
        if ((at == text || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' ' || at[len] == '\n'))
            return true;
    return false;
}

/* ---- Finding the cgroup ---- */

/* Parses lines of /proc/PID/mounts: "DEVICE PATH cgroup2 ...". */
static bool find_cgroup_mount(const char *proc, char *out, size_t size)
{
    char path[PATH_MAX], line[TEXT_MAX], type[64], where[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/mounts", proc);
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%*s %4095s %63s", where, type) == 2 && strcmp(type, "cgroup2") == 0 &&
                strlen(where) < size;
    if (f)
        fclose(f);
    if (found)
        (void)snprintf(out, size, "%s", where);
    return found;
}

bool isolate_cgroup_find_own(const char *proc, struct isolate_cgroup_path *out,
                             char error[ISOLATE_CGROUP_ERROR_MAX])
{
    char path[PATH_MAX], text[TEXT_MAX];
    (void)snprintf(path, sizeof path, "%s/cgroup", proc);
    errno = 0;
    if (!find_cgroup_mount(proc, out->mount, sizeof out->mount) || !read_text(path, text))
        return set_cgroup_error(error, "this system has no control groups of version 2", "");
    char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    char *own = line ? strchr(line, '/') : NULL;
    if (!own)
        return set_cgroup_error(error, "this process is in no control group of version 2", "");
    own[strcspn(own, "\n")] = '\0';
    size_t len = strlen(own), end = sizeof part - 1;
    if (len >= end && strcmp(own + len - end, part) == 0) /* the server has moved into its subgroup */
        own[len - end] = '\0';
    (void)snprintf(out->own, sizeof out->own, "%s", strcmp(own, "/") == 0 ? "" : own);
    return true;
}

/* ---- Creating the cgroup ---- */

static void own_cgroup_path(const struct isolate_cgroup_path *p, const char *rest, char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s%s/%s", p->mount, p->own, rest);
}

static pid_t parent_pid(pid_t pid)
{
    char path[40], text[TEXT_MAX];
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *behind =
        read_text(path, text) ? strrchr(text, ')') : NULL; /* the process name may contain any byte */
    return behind && sscanf(behind, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* Returns whether the process is this one or a descendant of it. */
static bool is_own_or_descendant(pid_t pid)
{
    const pid_t self = getpid();
    while (pid > 1 && pid != self)
        pid = parent_pid(pid);
    return pid == self;
}

static bool move_process(const char *to, pid_t pid)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    return write_text(to, text) || errno == ESRCH;
}

/* Moves our processes in the list. Returns their number, or -1 if a process cannot be moved. */
static int move_own_processes(const char *from, const char *to, bool *has_others)
{
    char text[TEXT_MAX], *end;
    int n = 0;
    *has_others = false;
    if (!read_text(from, text))
        return 0;
    for (char *at = text; *at; at = *end ? end + 1 : end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        if (!is_own_or_descendant((pid_t)pid)) /* if it has just exited, the next round's list lacks it */
            *has_others = true;
        else if (!move_process(to, (pid_t)pid))
            return -1;
        else
            n++;
    }
    return n;
}

/* The kernel does not allow a cgroup, except for the root, to have both processes and limited children. So
 * all existing processes move: the supervisors of other services and, after a reload, the workers. */
static bool move_into_subgroup(const struct isolate_cgroup_path *p, char *error)
{
    char to[PATH_MAX], from[PATH_MAX];
    bool has_others = false;
    if (!*p->own)
        return true;
    own_cgroup_path(p, part + 1, to);
    if (mkdir(to, 0755) < 0 && errno != EEXIST)
        return set_cgroup_error(error, "cannot make the control group", to);
    own_cgroup_path(p, "server/cgroup.procs", to);
    own_cgroup_path(p, "cgroup.procs", from);
    int n = move_process(to, getpid()) ? 1 : -1;
    for (int i = 0; i < ROUNDS && n > 0; i++) /* processes may start others in the meantime */
        n = move_own_processes(from, to, &has_others);
    if (n < 0)
        return set_cgroup_error(error, "cannot write", to);
    errno = 0;
    return has_others
               ? set_cgroup_error(error, "other processes are in the control group of the server", p->own)
               : true;
}

static bool is_controller_available(const struct isolate_cgroup_path *p, const char *controller, char *error)
{
    char path[PATH_MAX], text[TEXT_MAX], what[80];
    errno = 0;
    own_cgroup_path(p, "cgroup.controllers", path);
    (void)snprintf(what, sizeof what, "the controller `%s` is missing in", controller);
    return read_text(path, text) && has_word(text, controller) ? true : set_cgroup_error(error, what, path);
}

static bool enable_controller(const struct isolate_cgroup_path *p, const char *controller, char *error)
{
    char path[PATH_MAX], text[TEXT_MAX], word[32];
    if (!is_controller_available(p, controller, error))
        return false;
    own_cgroup_path(p, "cgroup.subtree_control", path);
    if (read_text(path, text) && has_word(text, controller))
        return true;
    (void)snprintf(word, sizeof word, "+%s", controller);
    return write_text(path, word) ? true : set_cgroup_error(error, "cannot write", path);
}

static bool write_cgroup_limit(const struct isolate_cgroup_path *p, const char *name, const char *file,
                               const char *value, char *error)
{
    char rest[PATH_MAX / 2], path[PATH_MAX];
    (void)snprintf(rest, sizeof rest, "%s/%s", name, file);
    own_cgroup_path(p, rest, path);
    return write_text(path, value) ? true : set_cgroup_error(error, "cannot write", path);
}

static bool write_cgroup_limits(const struct isolate_cgroup_path *p, const char *name,
                                const struct isolate_cgroup_limits *l, char *error)
{
    char cpu[48], memory[32];
    (void)snprintf(cpu, sizeof cpu, "%llu %d", (unsigned long long)l->cpu * PERIOD_US / 100, PERIOD_US);
    (void)snprintf(memory, sizeof memory, "%llu", (unsigned long long)l->memory);
    return (!l->cpu || write_cgroup_limit(p, name, "cpu.max", cpu, error)) &&
           (!l->memory || write_cgroup_limit(p, name, "memory.max", memory, error));
}

bool isolate_cgroup_check_limits(const struct isolate_cgroup_path *place,
                                 const struct isolate_cgroup_limits *limits,
                                 char error[ISOLATE_CGROUP_ERROR_MAX])
{
    char path[PATH_MAX];
    bool ok = (!limits->cpu || is_controller_available(place, "cpu", error)) &&
              (!limits->memory || is_controller_available(place, "memory", error));
    own_cgroup_path(place, "cgroup.procs", path);
    if (ok && access(path, W_OK) < 0)
        return set_cgroup_error(error, "cannot write", path);
    return ok;
}

int isolate_cgroup_create(const struct isolate_cgroup_path *place, const char *name,
                          const struct isolate_cgroup_limits *limits, char error[ISOLATE_CGROUP_ERROR_MAX])
{
    char path[PATH_MAX], rest[PATH_MAX / 2];
    *error = '\0';
    bool ok = move_into_subgroup(place, error) && (!limits->cpu || enable_controller(place, "cpu", error)) &&
              (!limits->memory || enable_controller(place, "memory", error));
    if (!ok)
        return -1;
    own_cgroup_path(place, name, path);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return set_cgroup_error(error, "cannot make the control group", path), -1;
    (void)snprintf(rest, sizeof rest, "%s/cgroup.procs", name);
    own_cgroup_path(place, rest, path);
    int fd = write_cgroup_limits(place, name, limits, error) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0 && !*error)
        (void)set_cgroup_error(error, "cannot open", path);
    return fd;
}

void isolate_cgroup_remove(const struct isolate_cgroup_path *place, const char *name)
{
    char path[PATH_MAX];
    own_cgroup_path(place, name, path);
    for (int i = 0; i < TRIES && rmdir(path) < 0 && errno == EBUSY; i++)
        nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
}
