/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/cgroup.h"

#include <limits.h>
#include <stdio.h>

static bool find_mount(struct mk_buf *out)
{
    struct mk_buf text = mk_buf_growing(WR_PROCFILE_MAX);
    bool found = wr_procfile_read(&text, "/proc/self/mounts") == 0 &&
                 wr_proctext_mount(mk_buf_str(&text), MK_STR("cgroup2"), out);
    mk_buf_free(&text);
    return found;
}

bool wr_cgroup_find(pid_t pid, struct mk_buf *path)
{
    char room[8192];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_clear(path);
    if (wr_procfile_read(&text, "/proc/%d/cgroup", (int)pid) != 0)
        return false;
    mk_str below = wr_proctext_cgroup(mk_buf_str(&text));
    if (below.len <= 1 || !find_mount(path))
        return false;
    mk_buf_add(path, below);
    mk_buf_add_char(path, '\0');
    return !path->failed;
}

static bool each_here(const char *path, bool (*fn)(void *data, pid_t pid), void *data)
{
    struct mk_buf text = mk_buf_growing(WR_PROCFILE_MAX);
    bool good = wr_procfile_read(&text, "%s/cgroup.procs", path) == 0;
    for (mk_str rest = mk_buf_str(&text); good && rest.len;) {
        uint64_t pid;
        mk_str line = mk_str_cut(&rest, '\n');
        if (mk_num_parse(line, &pid) && pid > 0 && pid <= INT_MAX)
            good = fn(data, (pid_t)pid);
    }
    mk_buf_free(&text);
    return good;
}

bool wr_cgroup_each(const char *path, bool (*fn)(void *data, pid_t pid), void *data)
{
    DIR *folder = opendir(path);
    bool good = folder && each_here(path, fn, data);
    for (struct dirent *e; good && (e = readdir(folder));) {
        char below[PATH_MAX];
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        int len = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        good = len > 0 && (size_t)len < sizeof below && wr_cgroup_each(below, fn, data);
    }
    if (folder)
        (void)closedir(folder);
    return good;
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
