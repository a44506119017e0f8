/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <limits.h>
#include <monkey/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE = 8192,
    SHARE_PERCENT = 80, /* the rest is for the master, for other processes, and for the kernel */
};

uint64_t memory_usage_parse(mk_str statm, uint64_t page_size)
{
    uint64_t resident, shared;
    (void)mk_str_word(&statm);
    bool ok = mk_num_parse(mk_str_word(&statm), &resident) && mk_num_parse(mk_str_word(&statm), &shared);
    return ok && resident >= shared ? (resident - shared) * page_size : 0;
}

/* Finds the first line of proc/name that `parse` accepts, and stores a part of it. */
static bool find_line(const char *proc, const char *name, bool (*parse)(char *line, char out[PATH_MAX]),
                      char out[PATH_MAX])
{
    char path[PATH_MAX], line[LINE];
    (void)snprintf(path, sizeof path, "%s/%s", proc, name);
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = parse(line, out);
    if (f)
        fclose(f);
    return found;
}

/* A line of /proc/PID/mounts: "DEVICE PATH cgroup2 ...". */
static bool parse_mount(char *line, char out[PATH_MAX])
{
    char type[16];
    _Static_assert(PATH_MAX == 4096, "the width below");
    return sscanf(line, "%*s %4095s %15s", out, type) == 2 && strcmp(type, "cgroup2") == 0;
}

/* A line of /proc/PID/cgroup: "0::/system.slice/monkey.service". */
static bool parse_own_group(char *line, char out[PATH_MAX])
{
    if (strncmp(line, "0::/", 4) != 0)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return snprintf(out, PATH_MAX, "%s", line + 3) < PATH_MAX;
}

/* "max", or a number of bytes. */
static uint64_t read_max(const char *folder)
{
    char path[PATH_MAX + 16];
    unsigned long long max;
    (void)snprintf(path, sizeof path, "%s/memory.max", folder);
    FILE *f = fopen(path, "re");
    bool is_number = f && fscanf(f, "%llu", &max) == 1;
    if (f)
        fclose(f);
    return is_number ? max : UINT64_MAX;
}

uint64_t memory_usage_cgroup_max(const char *proc)
{
    char mount[PATH_MAX], own[PATH_MAX], folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    if (!find_line(proc, "mounts", parse_mount, mount) || !find_line(proc, "cgroup", parse_own_group, own))
        return least;
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, own) >= sizeof folder)
        return least;
    for (size_t top = strlen(mount);;) {
        uint64_t max = read_max(folder);
        least = max < least ? max : least;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return least;
        *slash = '\0';
    }
}

uint64_t memory_usage_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

uint64_t memory_usage_share(uint64_t available, unsigned workers, uint64_t min)
{
    uint64_t share = available / 100 * SHARE_PERCENT / workers;
    return share > min ? share : min;
}
