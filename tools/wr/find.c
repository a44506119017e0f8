/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/find.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "wr/say.h"

enum { INODES_MAX = 256, INIT = 1 };

struct inodes {
    uint64_t all[INODES_MAX];
    size_t n;
};

const char *wr_find_word(enum wr_find_by by)
{
    return by == WR_FIND_BY_PID ? "pid" : by == WR_FIND_BY_PORT ? "port" : "name";
}

static bool out_of_memory(void)
{
    return wr_say_error("out of memory while looking for the server's processes");
}

static bool find_pids(const struct wr_find *what, struct wr_family *out)
{
    for (size_t i = 0; i < what->n_pids; i++) {
        size_t before = out->n;
        if (!wr_family_add(out, what->pids[i]))
            return out_of_memory();
        if (out->n == before && !wr_family_find(out, what->pids[i]))
            return wr_say_error("there is no process %d: start the server first, or let --port find it",
                                (int)what->pids[i]);
    }
    return true;
}

/* Line by line: connections that have ended stay in the list for a minute, and may be a hundred thousand. */
static void collect_inodes(const char *path, unsigned port, struct inodes *out)
{
    char line[512];
    FILE *file = fopen(path, "re");
    while (file && out->n < INODES_MAX && fgets(line, sizeof line, file))
        if (wr_proctext_listens(mk_str_from_c(line), port, &out->all[out->n]))
            out->n++;
    if (file)
        (void)fclose(file);
}

static bool is_among(const struct inodes *sockets, uint64_t inode)
{
    for (size_t i = 0; i < sockets->n; i++)
        if (sockets->all[i] == inode)
            return true;
    return false;
}

/* Does one of its descriptors lead to one of the sockets? */
static bool holds(pid_t pid, const struct inodes *sockets)
{
    DIR *folder = wr_procfile_folder("/proc/%d/fd", (int)pid);
    bool found = false;
    pid_t fd;
    while (!found && folder && wr_procfile_next(folder, &fd)) {
        char link[64], name[16] = "";
        uint64_t inode;
        struct mk_buf text = mk_buf_fixed(name, sizeof name - 1);
        mk_buf_add_num(&text, (uint64_t)fd);
        ssize_t len = readlinkat(dirfd(folder), name, link, sizeof link);
        mk_str to = mk_str_of(link, len > 0 ? (size_t)len : 0);
        if (mk_str_starts(to, MK_STR("socket:[")) &&
            mk_num_parse(mk_str_take(mk_str_skip(to, 8), to.len - 9), &inode))
            found = is_among(sockets, inode);
    }
    if (folder)
        (void)closedir(folder);
    return found;
}

static bool find_port(const struct wr_find *what, struct wr_family *out)
{
    struct inodes sockets = {.n = 0};
    bool init_holds = false;
    pid_t pid;
    collect_inodes("/proc/net/tcp", what->port, &sockets);
    collect_inodes("/proc/net/tcp6", what->port, &sockets);
    if (sockets.n == 0)
        return wr_say_error(
            "nothing listens on port %u here: start the server first, or name its process with --pid",
            what->port);
    DIR *folder = wr_procfile_folder("/proc");
    while (folder && wr_procfile_next(folder, &pid)) {
        if (pid == getpid() || !holds(pid, &sockets))
            continue;
        if (pid == INIT)
            init_holds = true; /* it holds sockets for services, and all processes are its children */
        else if (!wr_family_add(out, pid)) {
            (void)closedir(folder);
            return out_of_memory();
        }
    }
    if (folder)
        (void)closedir(folder);
    if (out->n == 0 && init_holds)
        return wr_say_error(
            "only process 1 holds port %u, for a service: name the server with --pid or --name", what->port);
    if (out->n == 0)
        return wr_say_error(
            "port %u is listened on, but by no process that we may look into: run wr as root or as "
            "the server's user, or name its process with --pid",
            what->port);
    return true;
}

/* By what `ps` shows, which the kernel cuts at 15 characters, or by the file that it runs. */
static bool is_named(pid_t pid, mk_str name)
{
    enum { COMM_MAX = 15 };
    struct wr_stat s;
    char path[32], link[PATH_MAX];
    if (!wr_procfile_stat(pid, &s) || wr_stat_is_dead(&s))
        return false;
    if (mk_str_eq(mk_str_from_c(s.name), mk_str_take(name, COMM_MAX)))
        return true;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, link, sizeof link);
    mk_str file = mk_str_of(link, n > 0 ? (size_t)n : 0);
    size_t slash = mk_str_find_last(file, '/');
    return slash != MK_STR_NONE && mk_str_eq(mk_str_skip(file, slash + 1), name);
}

/* wr, and what started it: a script may well be called as the server is. */
static bool is_above_us(pid_t pid)
{
    struct wr_stat s;
    for (pid_t at = getpid(); at > 0; at = s.parent) {
        if (at == pid)
            return true;
        if (!wr_procfile_stat(at, &s))
            break;
    }
    return false;
}

static bool find_name(const struct wr_find *what, struct wr_family *out)
{
    DIR *folder = wr_procfile_folder("/proc");
    mk_str name = mk_str_from_c(what->name);
    bool good = true;
    pid_t pid;
    while (good && folder && wr_procfile_next(folder, &pid))
        if (is_named(pid, name) && !is_above_us(pid))
            good = wr_family_add(out, pid);
    if (folder)
        (void)closedir(folder);
    if (!good)
        return out_of_memory();
    if (out->n == 0)
        return wr_say_error(
            "no process is called \"%s\": start the server first, or see `ps -e` for its name", what->name);
    return true;
}

bool wr_find_family(const struct wr_find *what, struct wr_family *out)
{
    bool found = what->by == WR_FIND_BY_PID    ? find_pids(what, out)
                 : what->by == WR_FIND_BY_PORT ? find_port(what, out)
                                               : find_name(what, out);
    if (!found)
        return false;
    if (!wr_family_grow(out))
        return out_of_memory();
    wr_family_mark_roots(out);
    if (!what->cgroup) {
        wr_family_find_cgroup(out);
        return true;
    }
    const char *fault = wr_family_use_cgroup(out, what->cgroup);
    return !fault || wr_say_error("%s: %s", what->cgroup, fault);
}
