/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/cgroup.h"

#include <limits.h>
#include <stdio.h>

static mk_err find_cgroup2_mount(struct mk_buf *out)
{
    struct mk_buf text = mk_buf_growing(WR_PROCFILE_MAX);
    mk_err e = wr_procfile_read(&text, "/proc/self/mounts");
    if (!e && !wr_proc_parse_mount(mk_buf_str(&text), MK_STR("cgroup2"), out))
        e = out->failed ? -ENOMEM : -ENOENT;
    mk_buf_free(&text);
    return e;
}

mk_err wr_cgroup_find(pid_t pid, struct mk_buf *path)
{
    char room[8192];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_clear(path);
    mk_err e = wr_procfile_read(&text, "/proc/%d/cgroup", (int)pid);
    mk_str below = wr_proc_parse_cgroup(mk_buf_str(&text));
    if (!e)
        e = below.len > 1 ? find_cgroup2_mount(path) : -ENOENT;
    if (e)
        return e;
    mk_buf_add(path, below);
    mk_buf_add_char(path, '\0');
    return path->failed ? -ENOMEM : 0;
}

static mk_err visit_cgroup_processes(const char *path, bool (*fn)(void *data, pid_t pid), void *data)
{
    struct mk_buf text = mk_buf_growing(WR_PROCFILE_MAX);
    mk_err e = wr_procfile_read(&text, "%s/cgroup.procs", path);
    for (mk_str rest = mk_buf_str(&text); !e && rest.len;) {
        uint64_t pid;
        mk_str line = mk_str_cut(&rest, '\n');
        if (mk_num_parse(line, &pid) && pid > 0 && pid <= INT_MAX && !fn(data, (pid_t)pid))
            e = -ECANCELED;
    }
    mk_buf_free(&text);
    return e;
}

mk_err wr_cgroup_visit_processes(const char *path, bool (*fn)(void *data, pid_t pid), void *data)
{
    DIR *folder = opendir(path);
    if (!folder)
        return mk_err_last();
    mk_err e = visit_cgroup_processes(path, fn, data);
    for (struct dirent *entry; !e && (entry = readdir(folder));) {
        char below[PATH_MAX];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        int len = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        e = len > 0 && (size_t)len < sizeof below ? wr_cgroup_visit_processes(below, fn, data)
                                                  : -ENAMETOOLONG;
    }
    (void)closedir(folder);
    return e;
}

bool wr_cgroup_read_cpu(const char *path, struct wr_cpu *out)
{
    char room[8192];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    struct wr_cpu_stat s;
    if (wr_procfile_read(&text, "%s/cpu.stat", path) != 0 || !wr_cpu_stat_parse(mk_buf_str(&text), &s))
        return false;
    *out = (struct wr_cpu){s.usage * 1000, s.user * 1000, s.system * 1000};
    return true;
}
